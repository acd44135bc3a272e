"""Lists of cables as people and their tools keep them: CSV, GraphML, ibnetdiscover, LLDP, NetBox."""
