import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePort, type ForwardedPort } from '#cli/commands/access/ports.ts';

const port = (local: number, remote: number, protocol: 'tcp' | 'udp' = 'tcp'): ForwardedPort => ({
  ...{ local, remote, protocol },
});

const cases: Record<string, ForwardedPort | string> = {
  '8080': port(8080, 8080),
  '8080:90': port(8080, 90),
  '0:90': port(0, 90),
  'tcp/8080:90': port(8080, 90),
  'udp/53': port(53, 53, 'udp'),
  'udp/5353:53': port(5353, 53, 'udp'),
  '5353:53/udp': port(5353, 53, 'udp'),
  '53/udp': port(53, 53, 'udp'),
  '': 'invalid port "": missing local and/or remote port',
  ':90': 'invalid port ":90": missing local and/or remote port',
  '1:2:3': 'invalid port "1:2:3": missing local and/or remote port',
  '0': 'invalid port "0": "0" is not between 1 and 65535',
  '8080:': 'invalid port "8080:": "" is not between 1 and 65535',
  '8080:0': 'invalid port "8080:0": "0" is not between 1 and 65535',
  '65536': 'invalid port "65536": "65536" is not between 0 and 65535',
  ssh: 'invalid port "ssh": "ssh" is not between 0 and 65535',
  'sctp/80': 'unknown protocol: sctp',
  '80/sctp': 'unknown protocol: sctp',
};
for (const [text, want] of Object.entries(cases)) {
  test(`"${text}"`, () => {
    if (typeof want === 'string') assert.throws(() => parsePort(text), { message: want });
    else assert.deepEqual(parsePort(text), want);
  });
}
