buffer data 4
param data
code
    MOV R0, 0x12345
    BRX R0
    EXIT
expect
error jump to 0x12345, where there is no code at 0x1 in CTA (0, 0, 0), thread (0, 0, 0)
