/** Migrations between two real QEMU processes: what the conformance suite (hypervisor-qemu.test.ts) cannot check from outside. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import type { Device, DiskSource, DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration, MovingDisk, OutgoingMigration, TransferredState } from '#node/hypervisor/migration.ts';
import { EventSignal } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import { readBlockJobs } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { reachableAddress, parseEndpointAddress } from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import { areReady, finishMirrors, startMirrors } from '#node/hypervisor/qemu/disks/mirror.ts';
import { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { echoDisk, READY, writeEchoDisk } from '#node/hypervisor/qemu/testing/echo-guest.ts';
import {
  guestFile,
  isSandboxed,
  qemuScene,
  qemuSkipReason,
  type QemuScene,
} from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { ownUserAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { Sandboxes } from '#node/hypervisor/qemu/sandbox/sandbox.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';
import { aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { hasEnded, stateOf, waitUntil } from '#node/hypervisor/testing/scene.ts';

const skip = qemuSkipReason();
const MIB = 2 ** 20;
const IMAGE_BYTES = 24 * MIB;

interface Move {
  readonly scene: QemuScene;
  readonly source: Hypervisor;
  readonly target: Hypervisor;
  readonly id: string;
  readonly outgoing: OutgoingMigration;
}

interface MoveOptions {
  readonly retargeted?: DomainDefinition;
  readonly disks?: readonly MovingDisk[];
  readonly network?: boolean;
  readonly bytesPerSecond?: number;
}

describe('qemu: a migrating guest', { skip, timeout: 60_000 }, () => {
  it('keeps running on the target, and can be migrated back', async () => {
    await withScene(async (scene) => {
      const guest = await echoGuest(scene);
      await bootGuest(scene.hypervisor, guest);
      const firstMove = await prepareMigration(scene, guest);
      await migrate(firstMove);
      await assertEchoes(firstMove.target, guest.id, 'hello there');
      await firstMove.source.remove(guest.id);

      const back = await prepareMigration(
        { ...scene, hypervisor: firstMove.target, second: async () => firstMove.source },
        guest,
      );
      await migrate(back);

      await assertEchoes(firstMove.source, guest.id, 'hello here');
    });
  });

  it('is encrypted on the network with a key that both sides delete afterwards', async () => {
    await withScene(async (scene) => {
      const taken = createServer().listen(49_152, '127.0.0.1');
      try {
        const { guest, retargeted, disks } = await guestWithDisks(scene);
        await scene.hypervisor.create(guest);
        const move = await prepareMigration(scene, guest, { retargeted, disks, network: true });
        const { memory, disks: nbd, secret } = move.outgoing.endpoint;
        assert.match(memory, /^tcp:127\.0\.0\.1:49\d{3}$/);
        assert.notEqual(memory, 'tcp:127.0.0.1:49152');
        assert.notEqual(nbd, memory);
        assert.match(secret ?? '', /^[0-9a-f]{64}$/);

        await migrate(move);

        assert.equal(stateOf(move.target, guest.id), 'running');
        for (const dir of [scene.nodeDir, scene.secondDir]) {
          assert.deepEqual(await readdir(join(dir, 'domains', guest.id, 'key')), []);
          const log = await readFile(join(dir, 'domains', guest.id, 'qemu.log'), 'utf8');
          assert.ok(!log.includes(secret ?? ''));
        }
        assertSameDisks(guest, retargeted);
      } finally {
        taken.close();
      }
    });
  });

  it('is refused with another key', async () => {
    await withScene(async (scene) => {
      const guest = scene.definition();
      await scene.hypervisor.create(guest);
      const move = await prepareMigration(scene, guest, { network: true });
      const door = { ...move.outgoing.endpoint, secret: 'ab'.repeat(32) };
      const { signal } = new AbortController();
      await assert.rejects(
        move.source.send(guest.id, { ...move.outgoing, endpoint: door }, { signal }),
        /the migration failed/,
      );
      await move.source.abortMigration(guest.id);
      assert.equal(stateOf(move.source, guest.id), 'running');
      assert.notEqual(stateOf(move.target, guest.id), 'running');
      await move.target.destroy(guest.id);
      for (const dir of [scene.nodeDir, scene.secondDir]) {
        assert.deepEqual(await readdir(join(dir, 'domains', guest.id, 'key')), [], dir);
      }
    });
  });

  it('cannot be migrated again while it is paused since an aborted migration', async () => {
    await withScene(async (scene) => {
      const guest = scene.definition();
      await scene.hypervisor.create(guest);
      await scene.hypervisor.pause(guest.id);
      const first = await prepareMigration(scene, guest);
      await send(first);
      await first.source.abortMigration(guest.id);
      await first.target.destroy(guest.id);
      await first.target.remove(guest.id);

      const second = await prepareMigration(scene, guest);
      await assert.rejects(send(second), /paused since an aborted migration/);
      await second.source.resume(guest.id);
      await migrate(second);

      assert.equal(stateOf(second.target, guest.id), 'running');
    });
  });

  it('has its disks copied bit by bit, and only the overlay of a layered disk', async () => {
    await withScene(async (scene) => {
      const { guest, retargeted, disks } = await guestWithDisks(scene);
      await scene.hypervisor.create(guest);

      await migrate(await prepareMigration(scene, guest, { retargeted, disks }));

      assertSameDisks(guest, retargeted);
      assert.ok((await stat(pathOf(retargeted, 'disk-layer'))).size < 4 * MIB, 'the base was not copied');
      assert.ok((await stat(pathOf(retargeted, 'disk-raw'))).blocks * 512 < IMAGE_BYTES / 2, 'it has holes');
    });
  });

  it('has writes copied that happen during the copy', async () => {
    await withScene(async (scene) => {
      const { guest, retargeted, disks } = await guestWithDisks(scene);
      await scene.hypervisor.create(guest);
      const { outgoing } = await prepareMigration(scene, guest, { retargeted, disks });
      // Writes of a guest take the same path. QEMU accepts one QMP connection, so no other may be open.
      await scene.hypervisor.close();
      const qmp = await monitorOf(scene, guest.id);
      const dir = new DomainDir(join(scene.nodeDir, 'domains'), guest.id);
      const server = await reachableAddress(parseEndpointAddress(outgoing.endpoint.disks ?? ''), 'disks', {
        dir,
        user: undefined,
        relays: [],
        files: isSandboxed
          ? new Sandboxes(join(scene.nodeDir, 'domains'), { runcBinary: 'runc', clock: systemClock }).accessOf(guest.id)
          : ownUserAccess,
      });
      await startMirrors(qmp, disks, { server, tlsCreds: undefined }, { bytesPerSecond: 0 });
      const ready = async () => areReady(await readBlockJobs(qmp), disks) || undefined;
      assert.ok(await poll(systemClock, { timeoutMs: 30_000, everyMs: 10 }, ready));
      for (const name of ['raw', 'layer']) {
        const command = `qemu-io -d /machine/peripheral/disk-${name}/virtio-backend "write -P 9 4M 1M"`;
        await qmp.execute('human-monitor-command', { 'command-line': command });
      }
      await qmp.execute('stop');

      await finishMirrors(qmp, { clock: systemClock, events: new EventSignal() }, disks);

      qmp.close();
      assertSameDisks(guest, retargeted);
      assert.equal((await readFile(pathOf(retargeted, 'disk-raw')))[4 * MIB], 9);
    });
  });

  it('reaches the target although guests cannot access its directory', async () => {
    await withScene(async (scene) => {
      const guest = scene.definition();
      await scene.hypervisor.create(guest);
      await chmod(scene.secondDir, 0o700);
      await migrate(await prepareMigration(scene, guest));
      const left = await readdir(join(scene.nodeDir, 'domains', guest.id, 'run'));
      assert.deepEqual(
        left.filter((name) => name.startsWith('to-')),
        [],
      );
    });
  });
});

describe('qemu: a guest whose migration is aborted', { skip, timeout: 60_000 }, () => {
  const interruptions: Record<string, (move: Move) => Promise<unknown>> = {
    'disks are being sent': async (move) => sendPartly(move, 'none'),
    'memory is being sent': async (move) => sendPartly(move, 'active'),
    'the guest is stopped': async (move) => send(move),
    'everything was sent': async (move) => {
      await send(move);
      await move.source.switchOver(move.id);
    },
    'the target died': async (move) => {
      await move.scene.killAtSecond(move.id);
      await assert.rejects(send(move));
    },
    'the target died at the switch-over': async (move) => {
      await send(move);
      await move.scene.killAtSecond(move.id);
      await assert.rejects(move.source.switchOver(move.id));
    },
  };

  for (const [interruption, until] of Object.entries(interruptions)) {
    it(`keeps running after the next agent took it back while ${interruption}`, async () => {
      await withScene(async (scene) => {
        const sendsDisks = interruption.startsWith('disks');
        const { guest, retargeted, disks } = await echoWithDisk(scene);
        await bootGuest(scene.hypervisor, guest);
        const slow = sendsDisks
          ? { bytesPerSecond: 1000 }
          : interruption.startsWith('memory')
            ? { bytesPerSecond: 2 * MIB }
            : {};
        const move = await prepareMigration(scene, guest, { retargeted, disks, ...slow });
        await until(move);

        const next = await scene.reopen();
        await next.adopt();
        assert.equal(next.get(guest.id)?.migration?.step, 'sending');
        await next.abortMigration(guest.id);

        assert.deepEqual(next.get(guest.id)?.current, { state: 'running' });
        await assertEchoes(next, guest.id, 'still here');
        await next.close();
        const line = await monitorOf(scene, guest.id);
        assert.deepEqual(await line.execute('query-jobs'), []);
        const nodes = (await line.execute('query-named-block-nodes', { flat: true })) as { 'node-name': string }[];
        assert.ok(nodes.every((node) => !node['node-name'].startsWith('mirror-')));
        line.close();
      });
    });
  }
});

describe('qemu: the state of a migrating guest', { skip, timeout: 120_000 }, () => {
  it('is complete on the disk of the target before the guest runs there', async () => {
    await withScene(async (scene) => {
      const [here, elsewhere] = [await stateDir(scene.nodeDir), await stateDir(scene.secondDir)];
      // An earlier attempt may have left such a file.
      await guestFile(elsewhere, 'tpm/tpm2-00.permall', Buffer.from('of another time'));
      const plain = scene.definition();
      const guest: DomainDefinition = {
        ...plain,
        memoryKib: 256 * 1024 - 8,
        firmware: { ...plain.firmware, loader: { type: 'efi', secureBoot: false, persistent: true } },
        devices: [...plain.devices, { type: 'tpm', id: 'tpm0', model: 'crb', persistent: true }],
        state: { directory: here },
      };
      // Data that a new target does not have.
      const template = await readFile('/usr/share/OVMF/OVMF_VARS_4M.fd');
      await guestFile(here, 'nvram.fd', Buffer.concat([template.subarray(0, -4), Buffer.from('mine')]));
      const retargeted = { ...guest, state: { directory: elsewhere } };
      await scene.hypervisor.create(guest);
      const move = await prepareMigration(scene, guest, { retargeted });
      await send(move);
      const sent = await move.source.switchOver(guest.id);
      const own = Buffer.from(sent.nvram ?? Buffer.alloc(0));
      assert.ok(own.length === template.length && own.subarray(-4).equals(Buffer.from('mine')));

      await move.target.store(guest.id, sent, {});

      assert.ok((await readFile(join(elsewhere, 'nvram.fd'))).equals(own));
      const [tpm, source] = await Promise.all(
        [elsewhere, here].map((dir) => readFile(join(dir, 'tpm', 'tpm2-00.permall'))),
      );
      assert.equal(tpm?.length, source?.length);
      await move.source.recordMigrated(guest.id);
      await move.target.commit(guest.id);
      assert.ok((await readFile(join(elsewhere, 'nvram.fd'))).equals(own), 'QEMU writes the same data');
      await move.source.leave(guest.id);
    });
  });

  it('is "migrated" and not "crashed" when the process of the source is killed', async () => {
    await withScene(async (scene) => {
      const guest = scene.definition();
      await scene.hypervisor.create(guest);
      const move = await prepareMigration(scene, guest);
      await send(move);
      await move.target.store(guest.id, await move.source.switchOver(guest.id), {});
      await move.source.recordMigrated(guest.id);

      await scene.killGuest(guest.id);

      const { current, migration } = await waitUntil(move.source, guest.id, hasEnded);
      assert.deepEqual([current, migration?.step], [{ state: 'ended', how: 'migrated' }, 'migrated']);
      await move.source.leave(guest.id);
      assert.equal(move.source.get(guest.id)?.migration?.step, 'left');
      await move.target.commit(guest.id);
      assert.equal(stateOf(move.target, guest.id), 'running');
    });
  });

  it('is resumed by the next agent after the migration was committed', async () => {
    await withScene(async (scene) => {
      const guest = await echoGuest(scene);
      await bootGuest(scene.hypervisor, guest);
      const move = await prepareMigration(scene, guest);
      await send(move);
      await move.target.store(guest.id, await move.source.switchOver(guest.id), {});
      await move.source.recordMigrated(guest.id);
      await move.target.close();
      // The state after a kill between the commit record and the resume.
      const path = join(scene.secondDir, 'domains', guest.id, 'domain.json');
      const record = JSON.parse(await readFile(path, 'utf8')) as { migration: object };
      await writeFile(path, JSON.stringify({ ...record, migration: { ...record.migration, step: 'committed' } }));

      const next = await scene.reopenSecond();
      await next.adopt();

      assert.equal(next.get(guest.id)?.migration?.step, 'arrived');
      await assertEchoes(next, guest.id, 'here I am');
    });
  });
});

async function withScene(run: (scene: QemuScene) => Promise<void>): Promise<void> {
  const scene = await qemuScene();
  try {
    await run(scene);
  } finally {
    await scene.end();
  }
}

async function prepareMigration(scene: QemuScene, guest: DomainDefinition, options: MoveOptions = {}): Promise<Move> {
  const { retargeted = guest, disks = [], network = false, bytesPerSecond = 0 } = options;
  const [source, target, uid] = [scene.hypervisor, await scene.second(), newUid()];
  const reach: IncomingMigration['transport'] = network ? { type: 'network', host: '127.0.0.1' } : { type: 'local' };
  const incoming = { uid, peer: 'here', startedAtMs: 1, paused: false, disks, transport: reach };
  const endpoint = await target.receive(retargeted, incoming, {});
  const outgoing = { uid, peer: 'there', endpoint, disks, bytesPerSecond, autoConverge: true };
  return { scene, source, target, id: guest.id, outgoing };
}

function send({ source, id, outgoing }: Move): Promise<void> {
  return source.send(id, outgoing, { signal: new AbortController().signal });
}

async function finish({ source, target, id }: Move, sent: TransferredState): Promise<void> {
  await target.store(id, sent, {});
  await source.recordMigrated(id);
  await target.commit(id);
  await source.leave(id);
}

async function migrate(move: Move): Promise<void> {
  await send(move);
  await finish(move, await move.source.switchOver(move.id));
}

/** Starts to send and returns while it is in progress; the test ignores its result. */
async function sendPartly({ source, id, outgoing }: Move, status: 'none' | 'active'): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const sending = source.send(id, outgoing, {
    signal: new AbortController().signal,
    onProgress: ({ memoryRounds }) => (memoryRounds > 0 || status === 'none' ? resolve() : undefined),
  });
  sending.catch(() => undefined);
  await promise;
}

async function echoGuest(scene: QemuScene): Promise<DomainDefinition> {
  const path = await guestFile(scene.nodeDir, 'volumes/echo/disk.img', Buffer.alloc(MIB));
  await writeEchoDisk(path);
  const plain = scene.definition();
  return { ...plain, devices: [...plain.devices.filter(({ type }) => type !== 'interface'), echoDisk(path)] };
}

async function echoWithDisk(scene: QemuScene) {
  const plain = await echoGuest(scene);
  const [here, elsewhere] = await Promise.all(
    [scene.nodeDir, scene.secondDir].map((dir) => guestFile(dir, 'volumes/data/disk.img', Buffer.alloc(2 * MIB, 'x'))),
  );
  const guest = withDisks(plain, { data: { path: here!, format: 'raw' } });
  const retargeted = withDisks(plain, { data: { path: elsewhere!, format: 'raw' } });
  return { guest, retargeted, disks: [{ deviceId: 'disk-data', bytes: 2 * MIB, overlay: false }] };
}

/** Makes a raw disk with holes, an overlay on a base that both sides have, and a read-only disk. */
async function guestWithDisks(scene: QemuScene) {
  const make = async (dir: string, fill: boolean) => {
    const raw = await guestFile(dir, 'volumes/raw/disk.img', Buffer.alloc(0));
    await truncate(raw, IMAGE_BYTES);
    const fixed = await guestFile(dir, 'volumes/fixed/disk.img', Buffer.alloc(MIB, fill ? 'fixed' : 0));
    const layer = await guestFile(dir, 'volumes/layer/disk.qcow2', Buffer.alloc(0));
    await guestFile(dir, 'volumes/layer/base.img', Buffer.alloc(IMAGE_BYTES, 'base'));
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', 'base.img', layer]);
    if (fill) {
      execFileSync('qemu-io', ['-f', 'raw', '-c', 'write -P 5 0 1M', '-c', 'write -P 6 20M 192k', raw]);
      execFileSync('qemu-io', ['-f', 'qcow2', '-c', 'write -P 7 10M 1M', '-c', 'write -z 20M 64k', layer]);
    }
    return {
      raw: { path: raw, format: 'raw' },
      layer: { path: layer, format: 'qcow2', base: join(dir, 'volumes/layer/base.img') },
      fixed: { path: fixed, format: 'raw' },
    } as const;
  };
  const plain = scene.definition();
  const guest = withDisks(plain, await make(scene.nodeDir, true));
  const retargeted = withDisks(plain, await make(scene.secondDir, false));
  const moving = (name: string, overlay: boolean, bytes = IMAGE_BYTES) => ({
    deviceId: `disk-${name}`,
    bytes,
    overlay,
  });
  const disks = [moving('raw', false), moving('layer', true), moving('fixed', false, MIB)];
  return { guest, retargeted, disks };
}

function withDisks(plain: DomainDefinition, sources: Record<string, DiskSource>): DomainDefinition {
  const disks = Object.entries(sources).map(([name, source], i): Device => {
    const disk = aDisk(name, 3 + i, source);
    return name === 'fixed' ? { ...disk, readonly: true } : disk;
  });
  return { ...plain, devices: [...plain.devices, ...disks] };
}

function pathOf({ devices }: DomainDefinition, id: string): string {
  const disk = devices.find((device) => device.id === id);
  assert.ok(disk?.type === 'disk' && disk.source !== undefined);
  return disk.source.path;
}

function assertSameDisks(guest: DomainDefinition, retargeted: DomainDefinition): void {
  for (const [id, format] of [
    ['disk-raw', 'raw'],
    ['disk-layer', 'qcow2'],
    ['disk-fixed', 'raw'],
  ] as const) {
    const args = ['compare', '--force-share', '-f', format, '-F', format, pathOf(guest, id), pathOf(retargeted, id)];
    execFileSync('qemu-img', args, { stdio: 'pipe' });
  }
}

async function stateDir(dir: string): Promise<string> {
  const path = join(dir, 'state');
  await mkdir(path, { mode: 0o711 });
  return path;
}

/** Connects to QEMU directly; no hypervisor may be open for it. */
async function monitorOf(scene: QemuScene, id: string): Promise<QmpClient> {
  const line = connect(join(scene.nodeDir, 'domains', id, 'run', 'qmp.sock'));
  return QmpClient.open(line, { clock: systemClock });
}

async function bootGuest(hypervisor: Hypervisor, guest: DomainDefinition): Promise<void> {
  await hypervisor.create(guest, { paused: true });
  const console = await hypervisor.openConsole(guest.id);
  const ready = waitForText(console, READY);
  await hypervisor.resume(guest.id);
  await ready;
  console.destroy();
}

/** Asserts that the guest echoes the text, and prints nothing else: it was not booted again. */
async function assertEchoes(hypervisor: Hypervisor, id: string, text: string): Promise<void> {
  const console = await hypervisor.openConsole(id);
  const received = waitForText(console, text);
  console.write(text);
  assert.equal(await received, text);
  console.destroy();
}

function waitForText(stream: Readable, text: string): Promise<string> {
  let all = '';
  return new Promise((resolve, reject) => {
    const listen = (bytes: Buffer) => {
      all += bytes.toString('latin1');
      if (!all.includes(text)) return;
      stream.off('data', listen);
      resolve(all);
    };
    stream.on('data', listen);
    stream.once('end', () => reject(new Error(`it ended after ${JSON.stringify(all)}`)));
  });
}
