"""Terminal output; the only package that imports rich.

consoles  how anything is printed;  listener  a training as it goes on;  outcome  what came of it;  lists  what stands
in a ledger, on a disk, on this machine.
"""
