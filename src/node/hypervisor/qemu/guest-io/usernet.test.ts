import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseUsernet } from '#node/hypervisor/qemu/guest-io/usernet.ts';

test('parses forwards and connections with the ports of host and guest', () => {
  const text = [
    'Hub -1 (net-default):\r',
    '  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r',
    '  TCP[SYN_SENT]      87       127.0.0.1 43375       10.0.2.15  8080     0     0\r',
    '  TCP[HOST_FORWARD]  86       127.0.0.1 43375       10.0.2.15  8080     0     0\r',
    '  TCP[ESTABLISHED]   90       10.0.2.15 33000         1.2.3.4   443     0     0\r',
    '  UDP[236 sec]       91       10.0.2.15 33001         1.2.3.4    53     0     0\r',
    'Hub -1 (net-old):\r',
    '  UDP[HOST_FORWARD]  -1       127.0.0.1 52278       10.0.2.15  9999     0     0\r',
    '',
  ].join('\n');
  const at = { hostPort: 43_375, guestPort: 8080 };
  assert.deepEqual(parseUsernet(text), [
    { netdev: 'net-default', protocol: 'tcp', state: 'SYN_SENT', ...at },
    { netdev: 'net-default', protocol: 'tcp', state: 'HOST_FORWARD', ...at },
    { netdev: 'net-old', protocol: 'udp', state: 'HOST_FORWARD', hostPort: 52_278, guestPort: 9999 },
  ]);
});
