/**
 * A real guest with OVMF and a TPM writes to both, its QEMU is killed, and the next domain begins with the same state. The
 * state is on a block volume if the machine can mount one. Only volumes and hypervisor of the node are used.
 */
import assert from 'node:assert/strict';
import { accessSync } from 'node:fs';
import { chmod, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';
import { isSandboxed, qemuScene, qemuSkipReason, type QemuScene } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { hasEnded, waitUntil } from '#node/hypervisor/testing/scene.ts';
import { aLocalVolume, aScene } from '#node/volumes/local/testing/volumes-scene.ts';
import { createVolumes } from '#node/volumes/local/volumes.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';

const GUEST = join(import.meta.dirname, '../../.cache/guest');
/** Long, because guests are emulated and the machine may be busy. */
const TIMEOUT_MS = 180_000;
const ARGUMENTS = 'console=ttyS0 quiet no_timer_check';

function skipReason(): string | false {
  try {
    accessSync(join(GUEST, 'vmlinuz'));
    return qemuSkipReason();
  } catch {
    return 'the built-in guest is not here; scripts/setup.sh builds it';
  }
}

function guestWithState(scene: QemuScene, directory: string): DomainDefinition {
  const plain = scene.definition();
  return {
    ...plain,
    memoryKib: 256 * 1024 - 8,
    state: { directory },
    firmware: { ...plain.firmware, loader: { type: 'efi', secureBoot: false, persistent: true } },
    kernel: { kernelPath: join(GUEST, 'vmlinuz'), initrdPath: join(GUEST, 'initrd.gz'), arguments: ARGUMENTS },
    devices: [...plain.devices, { type: 'tpm', id: 'tpm0', model: 'crb', persistent: true }],
  };
}

async function waitForReport({ hypervisor }: QemuScene, id: string, tag: string): Promise<GuestReport> {
  let text = '';
  const report = await poll(systemClock, { timeoutMs: TIMEOUT_MS, everyMs: 200 }, async () => {
    text = (await hypervisor.readConsoleLog(id)).toString('latin1');
    return lastReport(text, tag);
  });
  return report ?? assert.fail(`the guest did not report "${tag}"; its console ends with ${text.slice(-500)}`);
}

test('TPM and EFI variables survive kill -9 and another domain', { skip: skipReason(), timeout: 600_000 }, async () => {
  const scene = await qemuScene();
  await using objects = aScene();
  objects.bind('state', aLocalVolume({ mode: isSandboxed ? 'Block' : 'Filesystem', storage: '10Mi' }));
  await mkdir(join(scene.nodeDir, 'shared'));
  const volumes: Volumes = await createVolumes({
    nodeName: 'node-1',
    nodeDir: scene.nodeDir,
    sharedDir: join(scene.nodeDir, 'shared'),
    log: silentLog,
  });
  const startDomain = async () => {
    const { id } = scene.definition();
    const state = await volumes.prepareState(id, 'state', objects.lookups, {});
    assert.ok(state.is === 'ready', JSON.stringify(state));
    await scene.hypervisor.create({ ...guestWithState(scene, state.directory), id });
    return { id, directory: state.directory };
  };
  try {
    const first = await startDomain();
    const fresh = await waitForReport(scene, first.id, 'boot');
    assert.match(fresh.facts['tpm.nv'] ?? '', /^none/);
    assert.equal(fresh.facts['efi.var'], 'none');
    const line = await scene.hypervisor.openConsole(first.id);
    line.write('nvset remember-me\npcrext\nefiset so-do-i\nprobe written\n');
    const written = await waitForReport(scene, first.id, 'written');
    assert.match(written.facts['tpm.nv'] ?? '', /^remember-me/);
    assert.equal(written.facts['efi.var'], 'so-do-i');
    assert.notEqual(written.facts['tpm.pcr12'], fresh.facts['tpm.pcr12']);
    line.destroy();
    // Nothing of the state is in the directory of the domain.
    assert.deepEqual((await readdir(first.directory)).sort(), ['lock', 'nvram.fd', 'tpm']);
    assert.deepEqual(await readdir(join(scene.nodeDir, 'domains', first.id, 'run', 'tpm')), []);

    const crashed = waitUntil(scene.hypervisor, first.id, hasEnded);
    await scene.killGuest(first.id);
    await crashed;
    await volumes.release(first.id);
    await scene.hypervisor.remove(first.id);

    const second = await startDomain();
    const again = await waitForReport(scene, second.id, 'boot');
    assert.equal(again.facts['tpm.nv'], written.facts['tpm.nv']);
    assert.equal(again.facts['efi.var'], 'so-do-i');
    // Measurements belong to one boot.
    assert.equal(again.facts['tpm.pcr12'], fresh.facts['tpm.pcr12']);
    await scene.hypervisor.destroy(second.id);
    await volumes.release(second.id);
  } finally {
    for (const { id } of scene.hypervisor.list()) await scene.hypervisor.destroy(id);
    await volumes.releaseUnwanted(() => false);
    await scene.end();
  }
});

test('two domains never use the same state at a time', { skip: qemuSkipReason(), timeout: 60_000 }, async () => {
  const scene = await qemuScene();
  try {
    // Guests cannot access the directory, and its name has a comma, which separates options of programs.
    const directory = join(scene.nodeDir, 'a,b', 'state');
    await mkdir(directory, { recursive: true, mode: 0o711 });
    await chmod(join(directory, '..'), 0o700);
    const [first, second] = [guestWithState(scene, directory), guestWithState(scene, directory)];
    await scene.hypervisor.create(first, { paused: true });

    await assert.rejects(
      scene.hypervisor.create(second, { paused: true }),
      /another guest uses the persistent state in/,
    );
    // The next agent has no lock, but the guest has.
    const next = await scene.reopen();
    await next.adopt();
    await assert.rejects(next.create(second, { paused: true }), /another guest uses the persistent state in/);

    await next.destroy(first.id);
    await next.create(second, { paused: true });
    await next.destroy(second.id);
    assert.deepEqual((await readdir(directory)).sort(), ['lock', 'nvram.fd', 'tpm']);
  } finally {
    await scene.end();
  }
});
