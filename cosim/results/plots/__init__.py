"""Figures for print: what runs are asked, as lines with units, and drawn by matplotlib."""
