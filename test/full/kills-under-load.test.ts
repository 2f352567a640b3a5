/**
 * kill -9 of the server, a node agent or QEMU while a real guest is migrated, restored or restarted and other clients write
 * to the API. Afterwards one guest runs with the last data of its TPM, its EFI variables and its disk, and each
 * acknowledged write of the clients is there.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { lastReport } from '#cli/tour/guest-report.ts';
import { createClient } from '#client/rest-client.ts';
import { TransportError } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import { CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { qemuSkipReason } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { Ledger } from '#test/crash/ledger.ts';
import { Writer } from '#test/crash/writer.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import { openTransport } from '#test/support/server-process.ts';
import { STATEFUL_DOMAIN } from '#test/support/stateful-domain.ts';

const NAMESPACE = 'default';
const NAME = 'keeper';
const WRITERS = 8;
/** The kill comes within this time after the operation was requested. A migration takes about as long. */
const SPREAD_MS = 6000;
const RETRY_MS = 200;
const ANSWER_MS = 5000;
const MOST_ATTEMPTS = 20;

const OPERATIONS = ['migrate', 'restore', 'restart'] as const;
const VICTIMS = ['server', 'node-1', 'node-2', 'qemu'] as const;
type Operation = (typeof OPERATIONS)[number];
type Victim = (typeof VICTIMS)[number];

const CLAIM: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'root', namespace: NAMESPACE },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources: { requests: { storage: '32Mi' } } },
};

const KEEPER: VirtualMachine = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: NAME, namespace: NAMESPACE, labels: { [PROTECTION_LABEL]: 'True' } },
  spec: {
    runStrategy: 'Always',
    template: {
      spec: {
        domain: {
          ...STATEFUL_DOMAIN,
          devices: { tpm: { persistent: true }, disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
        },
        volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }],
      },
    },
  },
};

/** Data that outlives the guest. */
interface Remembered {
  readonly nv: string | undefined;
  readonly efi: string | undefined;
  readonly disk: string | undefined;
}

class LoadedPlane {
  readonly #plane: RealPlane;
  readonly #guest: RealGuest;
  #count = 0;

  constructor(plane: RealPlane) {
    this.#plane = plane;
    this.#guest = plane.guest(NAME);
  }

  /** Writes a new value to the TPM, the EFI variables and the disk. */
  async write(): Promise<Remembered> {
    const text = `gen${++this.#count}`;
    await this.#answer(`nvset ${text}\nefiset ${text}\nwrite vda ${text}`);
    const written = await this.read();
    assert.equal(written.disk, text);
    return written;
  }

  async read(): Promise<Remembered> {
    const { facts, output } = await this.#answer('read vda');
    return { nv: facts['tpm.nv'], efi: facts['efi.var'], disk: /GUEST read vda (\S+)/.exec(output)?.[1] };
  }

  /** Runs the command in the guest; again if it does not answer, because it was booting or its console was cut. */
  async #answer(command: string) {
    for (let i = 0; i < MOST_ATTEMPTS; i++) {
      const tag = `answer${++this.#count}`;
      const running = this.#guest.runCommand(`${command}\nprobe ${tag}`, new RegExp(`GUEST END ${tag}`));
      // The agent of its node may be starting.
      const orNothing = running.catch(() => setTimeout(ANSWER_MS, ''));
      const output = await Promise.race([orNothing, setTimeout(ANSWER_MS, '')]);
      const report = lastReport(output, tag);
      if (report !== undefined) return { facts: report.facts, output };
    }
    return assert.fail(`the guest did not answer to ${command}`);
  }

  /** Requests the operation. It may fail because of the kill, but must come to an end. */
  async request(operation: Operation): Promise<() => Promise<void>> {
    const { client, put } = this.#plane;
    const metadata = { name: `${operation}-${++this.#count}`, namespace: NAMESPACE };
    switch (operation) {
      case 'migrate':
        await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachineInstanceMigration',
          metadata,
          spec: { vmiName: NAME },
        });
        return async () => {
          await this.#plane.awaitObject(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, metadata.name, (migration) =>
            ['Succeeded', 'Failed'].includes(migration?.status?.phase ?? ''),
          );
        };
      case 'restore':
        await client.create(VIRTUAL_MACHINE_RESTORES, {
          apiVersion: 'snapshot.kubevirt.io/v1beta1',
          kind: 'VirtualMachineRestore',
          metadata,
          spec: {
            target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: NAME },
            targetReadinessPolicy: 'StopTarget',
            virtualMachineSnapshotName: 'then',
          },
        });
        return async () => {
          await this.#plane.awaitObject(
            VIRTUAL_MACHINE_RESTORES,
            metadata.name,
            (restore) => restore?.status?.complete === true,
          );
          await this.#guest.awaitVm('is released', ({ status }) => status?.restoreInProgress === undefined);
          await this.#plane.put(`virtualmachines/${NAME}/start`);
        };
      case 'restart': {
        const { uid } = (await this.#guest.vmi()).metadata;
        await put(`virtualmachines/${NAME}/restart`);
        return () =>
          this.#guest.awaitVmi('is another instance', (vmi) => vmi !== undefined && vmi.metadata.uid !== uid);
      }
    }
  }

  async kill(victim: Victim): Promise<void> {
    if (victim === 'server') {
      // The agents live on and hold its output open, so `exited` does not resolve.
      process.kill(this.#plane.server.pid, 'SIGKILL');
      while (existsSync(`/proc/${this.#plane.server.pid}`)) await setTimeout(RETRY_MS);
      await this.#plane.restart();
      return;
    }
    const below = victim === 'qemu' ? this.#plane.dataDir : join(this.#plane.dataDir, 'nodes', victim);
    const name = victim === 'qemu' ? /qemu-system/ : /node$/;
    // In a migration there are two; none while the guest is stopped.
    for (const { pid, command } of this.#plane.processes({ below }))
      if (name.test(command)) process.kill(pid, 'SIGKILL');
  }

  async snapshot(): Promise<void> {
    await this.#plane.create(VIRTUAL_MACHINE_SNAPSHOTS, {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineSnapshot',
      metadata: { name: 'then', namespace: NAMESPACE },
      spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: NAME } },
    });
    await this.#plane.awaitObject(
      VIRTUAL_MACHINE_SNAPSHOTS,
      'then',
      (snapshot) => snapshot?.status?.readyToUse === true,
    );
  }

  /** Waits until the guest runs and answers, and checks that there is one guest with one home of its state. */
  async settle(): Promise<void> {
    await this.#guest.awaitVmi(
      'runs',
      (vmi) => vmi?.status?.phase === 'Running' && vmi.metadata.deletionTimestamp === undefined,
    );
    await this.#answer('');
    const qemus = this.#plane.processes().filter(({ command }) => command.includes('qemu-system'));
    assert.equal(qemus.length, 1, 'one guest runs');
    const labelSelector = `${STATE_LABEL}=${NAME}`;
    const { items } = await this.#plane.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE, labelSelector });
    assert.equal(items.length, 1, 'its state is in one claim');
  }
}

/** Writes until the signal is aborted; waits while the server is away. */
async function writeUntil(signal: AbortSignal, writers: readonly Writer[]): Promise<void> {
  await Promise.all(
    writers.map(async (writer) => {
      while (!signal.aborted || writer.objects.some(({ doubt }) => doubt !== undefined)) {
        try {
          await writer.step();
        } catch (error) {
          if (!(error instanceof TransportError) && !isStarting(error)) throw error;
          await setTimeout(RETRY_MS);
        }
      }
    }),
  );
}

function isStarting(error: unknown): boolean {
  return error instanceof ApiError && [429, 503].includes(error.code);
}

function plan(random: SeededRandom): { operation: Operation; victim: Victim; afterMs: number }[] {
  return OPERATIONS.flatMap((operation) =>
    VICTIMS.map((victim) => ({ operation, victim, afterMs: Math.round(random.next() * SPREAD_MS) })),
  );
}

const skip = qemuSkipReason();
test('kill -9 under load loses nothing of a guest and no write', { skip, timeout: 3_600_000 }, async (t) => {
  const random = createSeededRandom(t);
  const plane = await startRealPlane(t);
  const loaded = new LoadedPlane(plane);
  await plane.create(PERSISTENT_VOLUME_CLAIMS, CLAIM);
  await plane.create(VIRTUAL_MACHINES, KEEPER);
  await loaded.settle();
  const then = await loaded.write();
  await loaded.snapshot();

  const ledger = new Ledger();
  const client = createClient(openTransport(t, plane.server.access()));
  const writers = Array.from(
    { length: WRITERS },
    (_, index) => new Writer({ client, type: CONFIG_MAPS, namespace: NAMESPACE, id: `w${index}`, random, ledger }),
  );
  const stop = new AbortController();
  const load = writeUntil(stop.signal, writers);
  const work = async () => {
    for (const { operation, victim, afterMs } of plan(random)) {
      await t.test(`${victim} is killed ${afterMs} ms after the request to ${operation}`, async () => {
        const written = await loaded.write();
        const finish = await loaded.request(operation);
        await setTimeout(afterMs);
        await loaded.kill(victim);
        await finish();
        await loaded.settle();
        assert.deepEqual(await loaded.read(), operation === 'restore' ? then : written);
      });
    }
  };
  await Promise.race([work(), load]);
  stop.abort();
  await load;

  const { items } = await plane.client.list(CONFIG_MAPS, { namespace: NAMESPACE });
  const found = new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
  const acknowledged = writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
  t.diagnostic(`${acknowledged} acknowledged writes`);
  assert.ok(acknowledged > 1000);
  for (const { name, current } of writers.flatMap(({ objects }) => objects))
    assert.equal(found.get(name), current?.metadata.resourceVersion, name);
});
