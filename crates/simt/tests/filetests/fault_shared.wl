launch 1 1 1 x 32 1 1 shared 64
buffer data 4
param data
code
    S2R R0, SR_LANEID
    SHF.L.U32 R0, R0, 0x2, RZ
    LDS R1, [R0]
    EXIT
expect
error access outside any allocation: load from shared address 0x40, 4 bytes at 0x2 in CTA (0, 0, 0), thread (16, 0, 0)
