"""Flow lists: a line for each flow, in and out.

=========  ======================================================================
``plain``  lines of a flow list as columns, where they are written as nearly all are: six numbers
``read``   kind ``flow-list``: the flow file of HPCC's, SimAI's and ConWeave's ns-3: sends at given times
``timed``  flows that start at given times as a workload: a SEND and a RECV each, and a wait where that
           isn't 0
``write``  format ``flow-list``: the flow file of HPCC's and SimAI's ns-3, with the times of a run of ours
=========  ======================================================================
"""
