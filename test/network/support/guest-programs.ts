/** Programs for network namespaces, in Python, because Node has neither taps nor raw sockets. All end with their input. */
export const PROGRAM = `
import ctypes, fcntl, os, select, socket, struct, sys, threading, time

def say(text):
    print(text, flush=True)

def tap(namespace, name):
    fd = os.open(namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), 'setns')
    os.close(fd)
    device = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(device, 0x400454ca, struct.pack('16sH22x', name.encode(), 0x1002))
    return device

def relay(a_namespace, a_name, b_namespace, b_name):
    a, b = tap(a_namespace, a_name), tap(b_namespace, b_name)
    say('ready')
    while True:
        for fd in select.select([a, b, 0], [], [])[0]:
            if fd == 0:
                say('end')
                return
            try:
                os.write(b if fd == a else a, os.read(fd, 65536))
            except OSError as error:
                say('lost: %s' % error)

def sniff(*names):
    sockets = []
    for name in names:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.bind((name, 0))
        s.setsockopt(263, 1, struct.pack('iHH8s', socket.if_nametoindex(name), 1, 0, b''))
        sockets.append(s)
    say('ready')
    while True:
        for s in select.select([*sockets, 0], [], [])[0]:
            if s == 0:
                say('end')
                return
            try:
                frame, address = s.recvfrom(65536)
            except OSError: # The device is down.
                continue
            say('%s %s' % (address[0], frame.hex()))

def send(name, frame):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((name, 0))
    s.send(bytes.fromhex(frame))
    say('sent')

def datagram(source, host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    s.sendto(b'test', (host, int(port)))
    say('sent')

def echo(connection):
    with connection:
        while True:
            data = connection.recv(65536)
            if not data:
                say('closed')
                return
            connection.sendall(data)

def listener(port):
    s = socket.create_server(('::', port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=16)
    say('ready')
    return s

def serve(port):
    s = listener(int(port))
    def accept():
        while True:
            connection, peer = s.accept()
            say('from %s' % peer[0])
            threading.Thread(target=echo, args=(connection,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()

def push(port):
    connection, _ = listener(int(port)).accept()
    number = 0
    while not select.select([0], [], [], 0.005)[0]:
        number += 1
        connection.sendall(b'%d\\n' % number)
    connection.close()
    say('end')

def pull(host, port):
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        for number, line in enumerate(connection.makefile('rb'), 1):
            if int(line) != number:
                raise Exception('wanted %d, got %s' % (number, line))
            say('%d' % number)
    say('closed')

def talk(host, port):
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        say('connected from %s' % connection.getsockname()[0])
        lines = connection.makefile('rb')
        number = 0
        while not select.select([0], [], [], 0.005)[0]:
            number += 1
            connection.sendall(b'%d\\n' % number)
            if int(lines.readline()) != number:
                raise Exception('out of order at %d' % number)
            say('%d' % number)
    say('end')

def idle(host, port):
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        say('connected')
        sys.stdin.read()
    say('end')

def refused(host, port):
    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
    s.settimeout(0.3)
    try:
        s.connect((host, int(port)))
        say('connected')
    except OSError as error:
        say(type(error).__name__)

globals()[sys.argv[1]](*sys.argv[2:])
`;
