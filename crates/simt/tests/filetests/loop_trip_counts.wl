# Lane n goes round n + 1 times; the loop's exit is its back edge, then a forward branch out of a second loop.
buffer out 256
param out
code
    S2R R0, SR_LANEID
    MOV R1, 0x0
    BSSY B0, done
loop:
    IADD3 R1, PT, R1, 0x1, RZ, PT
    ISETP.LE.U32.AND P0, PT, R1, R0, PT, PT
    @P0 BRA loop
done:
    BSYNC B0
    ACTMASK R2
    MOV R3, 0x0
    BSSY B0, out
again:
    ISETP.GE.U32.AND P0, PT, R3, R0, PT, PT
    @P0 BRA out
    IADD3 R3, PT, R3, 0x1, RZ, PT
    BRA again
out:
    BSYNC B0
    ACTMASK R4
    IADD3 R1, PT, R1, R3, RZ, PT
    LOP3 R2, R2, R4, RZ, 0xc0
    MOV R60, c[0x0][0x210]
    MOV R61, c[0x0][0x214]
    IMAD.WIDE.U32 R6, R0, 0x8, R60
    MOV R8, R1
    MOV R9, R2
    STG.64.E [R6.64], R8
    EXIT
expect
out
    00000001 ffffffff 00000003 ffffffff 00000005 ffffffff 00000007 ffffffff
    00000009 ffffffff 0000000b ffffffff 0000000d ffffffff 0000000f ffffffff
    00000011 ffffffff 00000013 ffffffff 00000015 ffffffff 00000017 ffffffff
    00000019 ffffffff 0000001b ffffffff 0000001d ffffffff 0000001f ffffffff
    00000021 ffffffff 00000023 ffffffff 00000025 ffffffff 00000027 ffffffff
    00000029 ffffffff 0000002b ffffffff 0000002d ffffffff 0000002f ffffffff
    00000031 ffffffff 00000033 ffffffff 00000035 ffffffff 00000037 ffffffff
    00000039 ffffffff 0000003b ffffffff 0000003d ffffffff 0000003f ffffffff
