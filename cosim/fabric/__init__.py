"""WHAT LINKS DO: their rates over time, by event or by order, and where flows go meanwhile.

===========  =================================================================================
``changes``  links that fail, slow down and come back; what routing hears of it, and when
``detours``  changes as the kernel takes them; each row's path, or one round what is dead
``links``    links by name
``pinned``   pinned paths: a routing in front of another, whose users say where some go
===========  =================================================================================
"""
