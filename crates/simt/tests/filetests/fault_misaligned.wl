buffer data 416
param data
code
    S2R R0, SR_LANEID
    MOV R60, c[0x0][0x210]
    MOV R61, c[0x0][0x214]
    IMAD.WIDE.U32 R2, R0, 0x4, R60
    LDG.64.E R4, [R2.64]
    EXIT
expect
error misaligned access: load from global address data+0x4, 8 bytes at 0x4 in CTA (0, 0, 0), thread (1, 0, 0)
