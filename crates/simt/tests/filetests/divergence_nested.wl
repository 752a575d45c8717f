# Nested ifs: lane & 3 picks one of four values; all meet again and count who is there.
buffer out 256
param out
code
    S2R R0, SR_LANEID
    LOP3 R1, R0, 0x1, RZ, 0xc0
    LOP3 R2, R0, 0x2, RZ, 0xc0
    ISETP.NE.U32.AND P0, PT, R1, RZ, PT, PT
    ISETP.NE.U32.AND P1, PT, R2, RZ, PT, PT
    BSSY B0, join
    @P0 BRA odd
    BSSY B1, join_even
    @P1 BRA two
    MOV R3, 0x100
    BRA join_even
two:
    MOV R3, 0x102
join_even:
    BSYNC B1
    ACTMASK R4
    BRA join
odd:
    BSSY B1, join_odd
    @P1 BRA three
    MOV R3, 0x101
    BRA join_odd
three:
    MOV R3, 0x103
join_odd:
    BSYNC B1
    ACTMASK R4
join:
    BSYNC B0
    ACTMASK R5
    LOP3 R4, R4, R5, RZ, 0x3c
    MOV R60, c[0x0][0x210]
    MOV R61, c[0x0][0x214]
    IMAD.WIDE.U32 R6, R0, 0x8, R60
    MOV R8, R3
    MOV R9, R4
    STG.64.E [R6.64], R8
    EXIT
expect
out
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
    00000100 aaaaaaaa 00000101 55555555 00000102 aaaaaaaa 00000103 55555555
