launch 2 1 1 x 32 1 1
buffer message text x > 0
buffer file text kernel.cu
buffer function text void f(int)
param message
param file
param function
code
    S2R R0, SR_CTAID.X
    ISETP.EQ.U32.AND P0, PT, R0, RZ, PT, PT
    @P0 EXIT
    MOV R2, c[0x0][0x218]
    MOV R3, c[0x0][0x21c]
    MOV R4, c[0x0][0x220]
    MOV R5, c[0x0][0x224]
    MOV R6, 0x2a
    MOV R7, 0x0
    SYSCALL.ASSERTFAIL RZ, c[0x0][0x210], R2, R6, R4
    EXIT
expect
error kernel.cu:42: void f(int): assertion `x > 0` failed at 0x9 in CTA (1, 0, 0), thread (0, 0, 0)
