# Integer reductions from many CTAs, whose order does not show.
launch 8 1 1 x 128 1 1
buffer out u32 0 0 0xffffffff 0 0xffffffff 0 0 0 0 0
param out
code
    S2R R0, SR_TID.X
    S2R R1, SR_CTAID.X
    IMAD R0, R1, c[0x0][0x0], R0
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    MOV R4, 0x1
    REDG.ADD.E [R2.64], R4
    REDG.MAX.E [R2.64+0x4], R0
    REDG.MIN.E [R2.64+0x8], R0
    IADD3 R5, PT, -R0, RZ, RZ, PT
    REDG.MIN.S32.E [R2.64+0xc], R5
    LOP3 R6, RZ, R0, RZ, 0x33
    REDG.AND.E [R2.64+0x10], R6
    REDG.OR.E [R2.64+0x14], R0
    REDG.XOR.E [R2.64+0x18], R0
    REDG.INC.E [R2.64+0x1c], R6
    MOV R8, 0xffffffff
    MOV R9, 0x0
    REDG.ADD.64.E [R2.64+0x20], R8
    EXIT
expect
out
    00000400 000003ff 00000000 fffffc01 fffffc00 000003ff 00000000 00000400
    fffffc00 000003ff
