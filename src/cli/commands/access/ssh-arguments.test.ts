import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Guest } from '#cli/commands/access/guest-port.ts';
import { sshHostName, buildProxyArguments, type SshOptions } from '#cli/commands/access/ssh-arguments.ts';

const GUEST: Guest = { kind: 'vm', name: 'db', namespace: 'shop' };
const PLAIN: SshOptions = {
  ...{ username: undefined, identityFile: undefined, knownHosts: undefined },
  ...{ port: 22, localSshOpts: [] },
};

const cases: Record<string, { self?: string[]; choice?: Partial<SshOptions>; want: string[] }> = {
  'has only the proxy command by default': {
    want: ['-o', 'ProxyCommand=virtctl port-forward --stdio=true vm/db/shop 22'],
  },
  'uses another port': {
    choice: { port: 2222 },
    want: ['-o', 'ProxyCommand=virtctl port-forward --stdio=true vm/db/shop 2222'],
  },
  'quotes a program path for the shell': {
    self: ["/home/o'hara/my vms/virtctl", '--context=100%'],
    want: [
      '-o',
      "ProxyCommand='/home/o'\\''hara/my vms/virtctl' --context=100%% port-forward --stdio=true vm/db/shop 22",
    ],
  },
  everything: {
    choice: { identityFile: '/k', knownHosts: '/h', localSshOpts: ['-o StrictHostKeyChecking=no', '-v'] },
    want: [
      ...['-o', 'ProxyCommand=virtctl port-forward --stdio=true vm/db/shop 22'],
      ...['-o', 'StrictHostKeyChecking=no', '-v', '-o', 'UserKnownHostsFile=/h', '-i', '/k'],
    ],
  },
};
for (const [name, { self = ['virtctl'], choice = {}, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(buildProxyArguments(self, GUEST, { ...PLAIN, ...choice }), want));
}

test('refuses an invalid port', () => {
  const message = 'Cannot use --port 0: expected 1 to 65535';
  assert.throws(() => buildProxyArguments([], GUEST, { ...PLAIN, port: 0 }), { message });
});

test('uses a different host name for each guest', () => {
  assert.equal(sshHostName(GUEST, undefined), 'vm.db.shop');
  assert.equal(sshHostName(GUEST, 'jdoe'), 'jdoe@vm.db.shop');
});
