"""Lists of cables as people and their tools keep them: CSV, GraphML, ibnetdiscover, LLDP, NetBox.

============  ======================================================================
``columns``   what columns of a cable list, or attributes of a graph's edges and nodes, are called
``csv_list``  cables as CSV: a header, then a cable on each line; also what NetBox exports as CSV
``graphml``   nodes and edges with attributes, as networkx, yEd and others write it
``lldp``      what hosts and switches see of their neighbours by LLDP: `lldpctl`, as text, keyvalue or JSON
``netbox``    NetBox's cables as JSON: of its REST API (``/api/dcim/cables/``), of GraphQL, old or new
``rates``     rates as lists of cables write them: 400G, 400GbE, 4xHDR, 400gbase-x-qsfpdd, a number below
              `Gbps`
============  ======================================================================
"""
