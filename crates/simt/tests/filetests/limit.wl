# A loop without end.
option limit 100000
buffer data 4
param data
code
loop:
    BRA loop
expect
error more than 100000 warp instructions
