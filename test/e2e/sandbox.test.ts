/**
 * A guest that has broken out of QEMU: commands run in its sandbox, with the rights of QEMU. They must reach nothing of the
 * host and nothing of another guest. QEMU's own filter of system calls, which would stop most of them, is not there.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { constants, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { guestUserOf, SHARED_DISKS_GID } from '#node/hardware/guest-user.ts';
import { isSandboxed, qemuScene, qemuSkipReason, type QemuScene } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { loopSkipReason } from '#node/volumes/local/testing/block-support.ts';
import { hasEnded, waitUntil } from '#node/hypervisor/testing/scene.ts';

const run = promisify(execFile);
const skip = qemuSkipReason() || (!isSandboxed && 'requires root');
const LOOP_MAJOR = 7;
const ACCESS_MODE = 3;
const SECRET = 'the data of the other guest';

describe('a guest that has broken out of QEMU', { skip, timeout: 60_000 }, () => {
  let scene: QemuScene;
  let intruder: DomainDefinition;
  let victim: DomainDefinition;
  let victimDisk: string;

  before(async () => {
    scene = await qemuScene();
    const guest = async (name: string) => {
      const path = await diskOf(name);
      const plain = scene.definition();
      return scene.definition({
        devices: [
          ...plain.devices,
          aDisk('data', 2, { path, format: 'raw' }),
          { type: 'tpm', id: 'tpm0', model: 'crb' },
        ],
      });
    };
    [intruder, victim] = [await guest('intruder'), await guest('victim')];
    victimDisk = join(scene.nodeDir, 'volumes', 'victim', 'disk.img');
    for (const definition of [intruder, victim]) await scene.hypervisor.create(definition, { paused: true });
  });

  after(() => scene?.end());

  async function diskOf(name: string): Promise<string> {
    const dir = join(scene.nodeDir, 'volumes', name);
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, 'disk.img'), Buffer.concat([Buffer.from(SECRET), Buffer.alloc(2 ** 20)]));
    return join(dir, 'disk.img');
  }

  /** Runs a command in the sandbox of the intruder and returns its output and errors. */
  async function attempt(script: string): Promise<string> {
    const { uid, gid } = guestUserOf(intruder.id);
    const args = ['--root', join(scene.nodeDir, 'sandboxes'), 'exec', '--user', `${uid}:${gid}`, intruder.id];
    const { stdout, stderr } = await run('runc', [...args, 'sh', '-c', `{ ${script}; } 2>&1 || true`]);
    return stdout + stderr;
  }

  it('sees its own disk and its own processes', async () => {
    const own = join(scene.nodeDir, 'volumes', 'intruder', 'disk.img');
    assert.ok((await attempt(`head -c 10 ${own}`)).startsWith(SECRET.slice(0, 10)));
    const names = (await attempt('cat /proc/[0-9]*/comm')).split('\n');
    assert.ok(names.includes('swtpm'));
    assert.equal(names.filter((name) => name.startsWith('qemu-system')).length, 1);
  });

  const unreachable: Record<string, (to: { disk: string; domain: string; nodeDir: string }) => string> = {
    'the disk of another guest': ({ disk }) => `cat ${disk}`,
    'the disk of another guest through /proc': ({ disk }) => `cat /proc/*/root${disk} /proc/*/cwd/../../../..${disk}`,
    'the files of another guest': ({ domain }) => `ls ${domain} ${domain}/run`,
    'the record of its own domain': ({ nodeDir }) => `cat ${nodeDir}/domains/*/domain.json`,
    'the passwords of the host': () => 'cat /etc/shadow /etc/passwd /root/.ssh/*',
    'block devices of the host': () => 'ls /dev/loop* /dev/vd* /dev/sd* /dev/mem',
    'the cgroups of the host': () => 'ls /sys/fs/cgroup',
  };
  for (const [name, script] of Object.entries(unreachable)) {
    it(`cannot read ${name}`, async () => {
      const domain = join(scene.nodeDir, 'domains', victim.id);
      const output = await attempt(script({ disk: victimDisk, domain, nodeDir: scene.nodeDir }));
      assert.match(output, /No such file|Permission denied|cannot access/);
      assert.ok(!output.includes(SECRET));
      assert.ok(!output.includes('root:'));
    });
  }

  for (const socket of ['qmp.sock', 'serial.sock', 'agent.sock']) {
    it(`cannot connect to ${socket} of another guest`, async () => {
      const path = join(scene.nodeDir, 'domains', victim.id, 'run', socket);
      assert.ok(statSync(path).isSocket());
      const program = `import socket; s = socket.socket(socket.AF_UNIX); s.connect('${path}'); print('connected')`;
      const output = await attempt(
        `python3 -c "${program}" || perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new(Peer => "${path}") ? "connected" : "refused: $!"'`,
      );
      assert.ok(!output.includes('connected'), output);
      assert.match(output, /No such file/);
    });
  }

  const forbidden: Record<string, string> = {
    'create a device': 'mknod disk b 7 0',
    'mount a file system': 'mount -t tmpfs none /dev',
    'change the programs of the host': 'touch /usr/bin/qemu-system-x86_64',
    'become another user': 'setpriv --reuid 0 true || su -c true',
    'give its files to root': 'chown 0 .',
  };
  for (const [name, script] of Object.entries(forbidden)) {
    it(`cannot ${name}`, async () => {
      assert.match(await attempt(script), /Permission denied|not permitted|Read-only|must be superuser|Authentication/);
    });
  }

  it('has a user of its own, limits and no privileges', async () => {
    const pids = [intruder, victim].map(({ id }) => scene.hypervisor.get(id)?.pid ?? 0);
    const users = pids.map((pid) => /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    assert.deepEqual(
      users,
      [intruder, victim].map(({ id }) => String(guestUserOf(id).uid)),
    );
    const status = readFileSync(`/proc/${pids[0]}/status`, 'utf8');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\t0+$`, 'm'));
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^Seccomp:\t2$/m);
    const cgroup = readFileSync(`/proc/${pids[0]}/cgroup`, 'utf8');
    assert.match(cgroup, new RegExp(`/selfsame/[0-9a-f]{8}-${intruder.id}`));
  });

  it('is killed at its memory limit, which the domain names, and no other guest is', async () => {
    const { id } = intruder;
    const runc = ['--root', join(scene.nodeDir, 'sandboxes')];
    const { data } = JSON.parse((await run('runc', [...runc, 'events', '--stats', id])).stdout);
    // A guest that boots needs more.
    const limit = String(data.memory.usage.usage + 2 ** 20);
    await run('runc', [...runc, 'update', '--memory', limit, id]);
    const ended = waitUntil(scene.hypervisor, id, hasEnded);
    await scene.hypervisor.resume(id);
    const { current } = await ended;
    assert.ok(current.state === 'ended' && current.how === 'crashed', JSON.stringify(current));
    assert.match(
      current.message ?? '',
      /^QEMU has exited: the kernel killed it because its sandbox reached the memory limit of \d+ MiB$/,
    );
    assert.equal(scene.hypervisor.get(victim.id)?.current.state, 'paused');
  });

  it('leaves nothing behind', async () => {
    for (const { id } of [intruder, victim]) {
      await scene.hypervisor.destroy(id);
      await scene.hypervisor.remove(id);
    }
    assert.deepEqual(readdirSync(join(scene.nodeDir, 'sandboxes')), []);
    assert.deepEqual(readdirSync(join(scene.nodeDir, 'domains')), []);
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
    assert.ok(!mounts.includes(scene.nodeDir));
    const cgroups = String(execFileSync('find', ['/sys/fs/cgroup', '-name', `*${intruder.id}`]));
    assert.equal(cgroups, '');
  });
});

describe('a guest in a sandbox', { skip, timeout: 60_000 }, () => {
  let scene: QemuScene;

  before(async () => {
    scene = await qemuScene();
  });

  after(() => scene?.end());

  /** Creates a block device with some data, until the test ends. */
  function loopDevice(t: TestContext, name: string): string {
    const file = join(scene.nodeDir, `${name}.img`);
    writeFileSync(file, Buffer.alloc(2 ** 20, SECRET));
    const device = String(execFileSync('losetup', ['--find', '--show', file])).trim();
    t.after(() => execFileSync('losetup', ['--detach', device]));
    return device;
  }

  it(
    'has block devices from its start and later, and cannot write to one that it may only read',
    {
      skip: loopSkipReason(),
    },
    async (t) => {
      const [first, second, third] = ['first', 'second', 'third'].map((name) => loopDevice(t, name));
      const { hypervisor } = scene;
      const plain = scene.definition();
      const disk = aDisk('first', 2, { path: first!, format: 'raw' });
      const definition = scene.definition({ ...plain, devices: [...plain.devices, disk] });
      await hypervisor.create(definition, { paused: true });
      await hypervisor.plug(definition.id, aDisk('second', 3, { path: second!, format: 'raw' }));
      await hypervisor.plug(definition.id, { ...aDisk('third', 4, { path: third!, format: 'raw' }), readonly: true });
      assert.deepEqual(openDevices(hypervisor.get(definition.id)?.pid ?? 0), {
        [first!]: 'read and write',
        [second!]: 'read and write',
        [third!]: 'read',
      });
      const { uid, gid, mode } = statSync(third!);
      assert.ok(uid !== guestUserOf(definition.id).uid && gid === SHARED_DISKS_GID && (mode & 0o777) === 0o640);
      await hypervisor.destroy(definition.id);
    },
  );

  it('cannot write to a disk image that was plugged only for reading', async () => {
    const { hypervisor } = scene;
    const definition = scene.definition();
    await hypervisor.create(definition, { paused: true });
    const path = await scene.diskFile();
    await hypervisor.plug(definition.id, { ...aDisk('data', 3, { path, format: 'raw' }), readonly: true });
    const { uid, gid } = guestUserOf(definition.id);
    const args = ['--root', join(scene.nodeDir, 'sandboxes'), 'exec', '--user', `${uid}:${gid}`, definition.id];
    // The descriptor is that of QEMU, and leads to the file although it is no longer mounted.
    const size = readFileSync(path).length;
    const script = `for fd in /proc/1/fd/*; do [ "$(stat -Lc %s $fd)" = ${size} ] && echo found && printf HACKED > $fd; done`;
    const { stdout, stderr } = await run('runc', [...args, 'sh', '-c', `{ ${script}; } 2>&1 || true`]);
    assert.match(stdout, /found/, stderr);
    assert.ok(!readFileSync(path).includes('HACKED'), stdout);
    await hypervisor.destroy(definition.id);
  });

  it('says why its TPM does not start', async () => {
    const plain = scene.definition();
    const directory = join(scene.nodeDir, 'state');
    await mkdir(join(directory, 'tpm'), { recursive: true });
    await writeFile(join(directory, 'tpm', 'tpm2-00.permall'), 'damaged');
    const definition = scene.definition({
      ...plain,
      devices: [...plain.devices, { type: 'tpm', id: 'tpm0', model: 'crb', persistent: true }],
      state: { directory },
    });
    await assert.rejects(scene.hypervisor.create(definition), /QEMU has exited: swtpm: /);
  });
});

/** Returns how a process has block devices open. */
function openDevices(pid: number): Record<string, string> {
  const devices: Record<string, string> = {};
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const { rdev } = statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false }) ?? {};
    if (rdev === undefined || rdev >> 8 !== LOOP_MAJOR) continue;
    const flags = Number.parseInt(
      /^flags:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '',
      8,
    );
    devices[`/dev/loop${rdev & 0xff}`] = (flags & ACCESS_MODE) === constants.O_RDONLY ? 'read' : 'read and write';
  }
  return devices;
}
