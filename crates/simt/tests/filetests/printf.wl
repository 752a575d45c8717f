# Lanes 0 and 33 of each of three CTAs print; the arguments are in local memory.
launch 3 1 1 x 64 1 1
option local 64
buffer format text thread %d of %s: %5.2f %lld|\n
buffer name text alpha
param format
param name
code
    S2R R0, SR_TID.X
    ISETP.EQ.U32.AND P0, PT, R0, RZ, PT, PT
    ISETP.EQ.U32.OR P0, PT, R0, 0x21, P0, PT
    @!P0 EXIT
    S2R R1, SR_CTAID.X
    IMAD R2, R1, 0x64, R0
    STL [RZ], R2
    MOV R4, c[0x0][0x218]
    MOV R5, c[0x0][0x21c]
    STL.64 [RZ+0x8], R4
    I2F.F64.S32 R6, R2
    STL.64 [RZ+0x10], R6
    MOV R8, 0xffffffff
    MOV R9, 0xffffffff
    STL.64 [RZ+0x18], R8
    MOV R10, 0x0
    MOV R11, 0x2
    SYSCALL.VPRINTF R12, c[0x0][0x210], R10, RZ, RZ
    EXIT
expect
print thread 0 of alpha:  0.00 -1|
print thread 33 of alpha: 33.00 -1|
print thread 100 of alpha: 100.00 -1|
print thread 133 of alpha: 133.00 -1|
print thread 200 of alpha: 200.00 -1|
print thread 233 of alpha: 233.00 -1|
