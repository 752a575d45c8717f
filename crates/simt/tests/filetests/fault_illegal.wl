buffer data 4
param data
code
    TXQ R0, RZ, RZ, 0x1
    EXIT
expect
error illegal instruction at 0x0 in CTA (0, 0, 0), thread (0, 0, 0)
