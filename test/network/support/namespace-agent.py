"""Sends, listens and watches in one network namespace. Reads one JSON request per line, writes one JSON answer per line.

listen  {tcp, udp}                       echo servers on all addresses, IPv4 and IPv6
names   {address, answer}                a DNS server on that address: every name has that IPv4 address
reach   {targets, marker}                for each target: whether it answers. Waits for those with "answers", and for the
                                         marker (an address that answers echo requests), which is asked last
query   {server, name, type, protocol}   the addresses that a DNS server answers, or its error code
heard   {}                               all datagrams that the echo servers have received
watch   {interface}                      remembers all frames that arrive from now on
frames  {until}                          the frames that arrived, as hexadecimal digits, once one contains `until`
send    {interface, frames}              sends frames
"""
import itertools, json, os, select, socket, struct, sys, threading, time

LIMIT_S = 8
watched = []
heard_data = []
listening = []
echoes = itertools.count(os.getpid() * 100)


def family(host):
    return socket.AF_INET6 if ':' in host else socket.AF_INET


def listen(request):
    if listening:
        return {}
    listening.append(request)
    for port in request.get('tcp', []):
        server = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(('::', port))
        server.listen(64)
        threading.Thread(target=serve_tcp, args=(server,), daemon=True).start()
    for port in request.get('udp', []):
        server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(('::', port))
        threading.Thread(target=serve_udp, args=(server,), daemon=True).start()
    return {}


def serve_tcp(server):
    while True:
        connection, peer = server.accept()
        connection.sendall(json.dumps([peer[0], peer[1]]).encode() + b'\n')
        connection.close()


def serve_udp(server):
    while True:
        data, peer = server.recvfrom(2048)
        heard_data.append(data[:40].decode(errors='replace'))
        server.sendto(json.dumps([peer[0], peer[1]]).encode(), peer)


def names(request):
    server = socket.socket(family(request['address']), socket.SOCK_DGRAM)
    server.bind((request['address'], 53))

    def serve():
        while True:
            query, peer = server.recvfrom(2048)
            end = 12
            while query[end] != 0:
                end += query[end] + 1
            question = query[12:end + 5]
            answer = b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 60, 4) + socket.inet_aton(request['answer'])
            server.sendto(query[:2] + struct.pack('>HHHHH', 0x8180, 1, 1, 0, 0) + question + answer, peer)

    threading.Thread(target=serve, daemon=True).start()
    return {}


def ask(target):
    """Returns a socket that becomes readable when the target answers."""
    host, protocol = target['host'], target['protocol']
    if protocol == 'icmp':
        number = socket.IPPROTO_ICMPV6 if ':' in host else socket.IPPROTO_ICMP
        asked = socket.socket(family(host), socket.SOCK_RAW, number)
        asked.connect((host, 0))
        if ':' in host:
            icmp6_filter = bytearray(b'\xff' * 32)
            icmp6_filter[129 // 8] &= ~(1 << (129 % 8))
            asked.setsockopt(socket.IPPROTO_ICMPV6, 1, bytes(icmp6_filter))
            asked.send(struct.pack('>BBHHH', 128, 0, 0, next(echoes) & 0xffff, 1))
        else:
            header = struct.pack('>BBHHH', 8, 0, 0, next(echoes) & 0xffff, 1)
            total = sum(struct.unpack('>4H', header))
            total = (total >> 16) + (total & 0xffff)
            asked.send(header[:2] + struct.pack('>H', ~total & 0xffff) + header[4:])
        return asked
    kind = socket.SOCK_STREAM if protocol == 'tcp' else socket.SOCK_DGRAM
    asked = socket.socket(family(host), kind)
    asked.setblocking(False)
    if 'from' in target:
        asked.bind(('', target['from']))
    try:
        asked.connect((host, target['port']))
        if protocol == 'udp':
            asked.send(b'x' * target.get('size', 5))
    except BlockingIOError:
        pass
    return asked


def answer_of(asked):
    try:
        data = asked.recv(2048)
        return {'answered': True, 'data': data.decode(errors='replace')}
    except OSError as error:
        return {'answered': False, 'error': os.strerror(error.errno)}


def reach(request):
    results = [None] * len(request['targets'])
    sockets = {}
    for i, target in enumerate(request['targets']):
        try:
            sockets[ask(target)] = i
        except OSError as error:
            results[i] = {'answered': False, 'error': os.strerror(error.errno)}
    marker = None
    if request.get('marker'):
        marker = ask({'host': request['marker'], 'protocol': 'icmp'})
    end = time.monotonic() + LIMIT_S
    marked = marker is None
    while time.monotonic() < end:
        awaited = [i for i in sockets.values() if results[i] is None and request['targets'][i].get('answers')]
        if marked and not awaited:
            break
        open_sockets = [s for s, i in sockets.items() if results[i] is None] + ([] if marked else [marker])
        ready, _, _ = select.select(open_sockets, [], [], 0.5)
        for asked in ready:
            if asked is marker:
                marked = True
            else:
                results[sockets[asked]] = answer_of(asked)
    # An answer that left before that of the marker has arrived by now.
    for asked in select.select([s for s, i in sockets.items() if results[i] is None], [], [], 0.02)[0]:
        results[sockets[asked]] = answer_of(asked)
    for asked in list(sockets) + ([marker] if marker else []):
        asked.close()
    if not marked:
        return {'error': 'the marker does not answer'}
    return {'results': [r or {'answered': False, 'error': 'silence'} for r in results]}


def query(request):
    kind = {'A': 1, 'AAAA': 28}[request['type']]
    labels = b''.join(bytes([len(label)]) + label.encode() for label in request['name'].split('.'))
    packet = struct.pack('>HHHHHH', 7, 0x0100, 1, 0, 0, 0) + labels + b'\0' + struct.pack('>HH', kind, 1)
    tcp = request['protocol'] == 'tcp'
    asked = socket.socket(family(request['server']), socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    asked.settimeout(LIMIT_S)
    asked.connect((request['server'], 53))
    asked.send(struct.pack('>H', len(packet)) + packet if tcp else packet)
    answer = asked.recv(2048)[2 if tcp else 0:]
    asked.close()
    code, count = answer[3] & 15, struct.unpack('>H', answer[6:8])[0]
    at, addresses = len(packet), []
    for _ in range(count):
        kind, _, _, length = struct.unpack('>HHIH', answer[at + 2:at + 12])
        data = answer[at + 12:at + 12 + length]
        addresses.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data))
        at += 12 + length
    return {'code': code, 'addresses': addresses}


def heard(request):
    return {'data': heard_data}


def watch(request):
    watcher = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    watcher.bind((request['interface'], 0))
    watcher.settimeout(0.2)
    watched.clear()

    def collect():
        while True:
            try:
                frame, source = watcher.recvfrom(4096)
                if source[2] != 4:  # Not those that this namespace sends.
                    watched.append(frame)
                    del watched[:-2000]
            except socket.timeout:
                pass
            except OSError:
                return

    threading.Thread(target=collect, daemon=True).start()
    return {}


def frames(request):
    until = bytes.fromhex(request['until'])
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        seen = list(watched)
        if any(until in frame for frame in seen):
            return {'frames': [frame.hex() for frame in seen]}
        time.sleep(0.005)
    return {'error': 'the marker did not arrive'}


def send(request):
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind((request['interface'], 0))
    for frame in request['frames']:
        sender.send(bytes.fromhex(frame))
    sender.close()
    return {}


OPERATIONS = {f.__name__: f for f in (listen, names, reach, query, heard, watch, frames, send)}
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = OPERATIONS[request['operation']](request)
    except Exception as error:
        answer = {'error': f'{type(error).__name__}: {error}'}
    print(json.dumps(answer), flush=True)
