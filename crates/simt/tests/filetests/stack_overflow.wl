option stack
buffer data 4
param data
code
    CALL R2, forever
    EXIT
func forever
    STL [R1], R2
    IADD3 R1, PT, R1, 0x100, RZ, PT
    CALL R2, forever
    RET R2
expect
error access outside any allocation: store to local address 0x10000, 4 bytes at 0x2 in CTA (0, 0, 0), thread (0, 0, 0)
