# The same lock inside a warp, with a convergence barrier that is not marked: waiting lanes are let go all the same.
launch 1 1 1 x 3 1 1
option ordered
buffer lock 4
buffer out 4
param lock
param out
code
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    MOV R4, c[0x0][0x218]
    MOV R5, c[0x0][0x21c]
    MOV R7, 0x1
    BSSY B0, got
try:
    ATOMG.CAS.E R8, [R2.64], RZ, R7
    ISETP.NE.U32.AND P0, PT, R8, RZ, PT, PT
    @P0 BRA try
got:
    BSYNC B0
    LDG.E R9, [R4.64]
    IADD3 R9, PT, R9, 0x1, RZ, PT
    STG.E [R4.64], R9
    STG.E [R2.64], RZ
    EXIT
expect
out
    00000003
