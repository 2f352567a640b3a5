/** Tests the description of sandboxes. test/e2e/sandbox.test.ts shows what processes in a sandbox can do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildOciConfig } from '#node/sandbox/oci-config.ts';

interface Config {
  readonly process: { readonly user: object; readonly capabilities: object; readonly noNewPrivileges: boolean };
  readonly mounts: readonly { readonly destination: string; readonly source: string; readonly options: string[] }[];
  readonly linux: {
    readonly resources: { readonly devices: readonly object[] };
    readonly namespaces: readonly object[];
  };
}

function build(files: Parameters<typeof buildOciConfig>[0]['files'] = []): Config {
  return buildOciConfig({
    hostname: 'guest',
    command: ['qemu'],
    cwd: '/node/domains/a/run',
    env: { LC_ALL: 'C' },
    user: { uid: 7, gid: 7 },
    groups: [9],
    files,
    pluggedDir: '/node/plugged/a',
    devices: [{ path: '/dev/kvm', major: 10, minor: 232 }],
    cgroup: '/selfsame/a',
    limits: { memoryBytes: 1, cpuShares: 2, processes: 3 },
  }) as Config;
}

test('gives no privileges', () => {
  const { process, linux } = build();
  assert.deepEqual(process.user, { uid: 7, gid: 7, additionalGids: [9] });
  assert.deepEqual(new Set(Object.values(process.capabilities).flat()), new Set());
  assert.equal(process.noNewPrivileges, true);
  assert.deepEqual(
    linux.namespaces,
    ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
  );
});

test('denies all devices except block devices that are visible, and the given ones', () => {
  assert.deepEqual(build().linux.resources.devices, [
    { allow: false, access: 'rwm' },
    { allow: true, type: 'b', access: 'rw' },
    { allow: true, type: 'c', major: 10, minor: 232, access: 'rw' },
  ]);
});

test('mounts a file inside a visible directory after the directory', () => {
  const { mounts } = build([
    { path: '/pv/tpm', readonly: false, as: '/node/domains/a/run/tpm' },
    { path: '/node/domains/a/run', readonly: false },
    { path: '/usr', readonly: true },
  ]);
  assert.deepEqual(
    mounts.map(({ source, destination, options }) => [source, destination, options.includes('ro')]).slice(2),
    [
      ['/usr', '/usr', true],
      ['/node/domains/a/run', '/node/domains/a/run', false],
      ['/pv/tpm', '/node/domains/a/run/tpm', false],
      ['/node/plugged/a', '/node/plugged/a', false],
    ],
  );
});
