launch 1 1 1 x 16 4 1
buffer data 4
param data
code
    S2R R0, SR_TID.Y
    S2R R1, SR_TID.X
    ISETP.EQ.U32.AND P0, PT, R0, 0x3, PT, PT
    ISETP.EQ.U32.AND P0, PT, R1, 0x5, P0, PT
    @P0 BPT.TRAP
    EXIT
expect
error trap at 0x4 in CTA (0, 0, 0), thread (5, 3, 0)
