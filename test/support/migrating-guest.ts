/** One real guest with OVMF and a TPM on a QemuPlane: migrates it, reads what it sees, and asserts its invariants. */
import assert from 'node:assert/strict';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import type { QemuNode, QemuPlane } from '#test/support/qemu-plane.ts';
import { completeLines } from '#test/support/real-guests.ts';
import type { Loose } from '#test/support/test-api.ts';
import { STATEFUL_DOMAIN } from '#test/support/stateful-domain.ts';

/** Long enough for a guest that listens, also on a busy machine. A guest that does not answer is asked again. */
const ANSWER_MS = 2000;
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const MIGRATIONS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';

/** The state of a guest that stays the same until the guest is restarted. */
export interface GuestState {
  readonly nv: string | undefined;
  readonly efi: string | undefined;
  readonly disk: string;
  readonly pcr: string | undefined;
  readonly bootId: string | undefined;
}

export class MigratingGuest {
  readonly name: string;
  readonly #plane: QemuPlane;
  #generation = 0;
  #migrations = 0;

  constructor(plane: QemuPlane, name: string) {
    this.#plane = plane;
    this.name = name;
  }

  /** Creates the VM with a disk on a claim of this class. The KubeVirt object decides where its persistent state is. */
  async create({ storageClass = 'local', mode = 'ReadWriteOnce', block = false } = {}): Promise<GuestReport> {
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: `${this.name}-root` },
      spec: {
        accessModes: [mode],
        storageClassName: storageClass,
        volumeMode: block ? 'Block' : 'Filesystem',
        resources: { requests: { storage: '32Mi' } },
      },
    };
    await this.#plane.api.ok('POST', CLAIMS, { body: claim });
    await this.#plane.api.ok('POST', VMS, { body: this.#vm() });
    return await this.awaitBoot('');
  }

  #vm(): Loose {
    return {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: this.name },
      spec: {
        runStrategy: 'Always',
        template: {
          spec: {
            domain: {
              ...STATEFUL_DOMAIN,
              devices: {
                tpm: { persistent: true },
                interfaces: [{ name: 'default', masquerade: {} }],
                disks: [{ name: 'root', disk: { bus: 'virtio' } }],
              },
            },
            networks: [{ name: 'default', pod: {} }],
            volumes: [{ name: 'root', persistentVolumeClaim: { claimName: `${this.name}-root` } }],
          },
        },
      },
    };
  }

  async vmi(): Promise<Loose> {
    return await this.#plane.find(`${VMIS}/${this.name}`);
  }

  async migration(name: string): Promise<Loose> {
    return await this.#plane.find(`${MIGRATIONS}/${name}`);
  }

  /** Starts a migration and returns its name. */
  async startMigration(): Promise<string> {
    const name = `${this.name}-${++this.#migrations}`;
    const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration', metadata: { name } };
    await this.#plane.api.ok('POST', MIGRATIONS, { body: { ...body, spec: { vmiName: this.name } } });
    return name;
  }

  /** Waits for the end of the migration and returns `Succeeded` or `Failed: <reason>`. */
  async awaitMigration(name: string): Promise<string> {
    return await this.#plane.awaitValue(`the end of migration ${name}`, async () => {
      const { status = {} } = (await this.migration(name)) ?? {};
      if (status.phase === 'Succeeded') return 'Succeeded';
      return status.phase === 'Failed'
        ? `Failed: ${status.migrationState?.failureReason ?? status.message}`
        : undefined;
    });
  }

  async migrate(): Promise<void> {
    assert.equal(await this.awaitMigration(await this.startMigration()), 'Succeeded');
  }

  async cancel(name: string): Promise<void> {
    await this.#plane.api.ok('DELETE', `${MIGRATIONS}/${name}`);
  }

  async sendVerb(verb: string): Promise<void> {
    await this.#plane.api.ok(
      'PUT',
      `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/${this.name}/${verb}`,
      { body: {} },
    );
  }

  /** Returns the nodes on which the guest runs; there must never be more than one. */
  async runningNodes(): Promise<QemuNode[]> {
    const uid: string = (await this.vmi())?.metadata.uid ?? '';
    return this.#plane.nodes.filter(
      (node) => node.agent !== undefined && node.hypervisor.get(uid)?.current.state === 'running',
    );
  }

  /** Waits for the first report of a boot other than this one. */
  async awaitBoot(afterBootId: string): Promise<GuestReport> {
    return await this.#plane.awaitValue(`the boot of ${this.name}`, async () => {
      const [node] = await this.runningNodes();
      if (node === undefined) return undefined;
      const text = await node.hypervisor.readConsoleLog((await this.vmi()).metadata.uid).catch(() => Buffer.alloc(0));
      const report = lastReport(text.toString('latin1'));
      return report !== undefined && report.facts['bootid'] !== afterBootId ? report : undefined;
    });
  }

  /** Waits until the guest runs on one node, all objects agree about that node, and the guest answers. */
  async awaitSettled(): Promise<void> {
    await this.#plane.awaitValue(`${this.name} to settle`, async () => {
      const [node, ...more] = await this.runningNodes();
      const vmi = await this.vmi();
      if (node === undefined || more.length > 0 || vmi?.status?.nodeName !== node.name) return undefined;
      const phase: string = vmi.status.phase;
      return phase === 'Running' && vmi.metadata.deletionTimestamp === undefined ? true : undefined;
    });
    await this.#plane.awaitValue(`an answer of ${this.name}`, async () => {
      const tag = `here${++this.#generation}`;
      // A guest that is still booting loses what is typed.
      return await this.#isAnswering(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
    });
  }

  async #isAnswering(line: string, pattern: RegExp): Promise<true | undefined> {
    const [node] = await this.runningNodes();
    const stream = await node?.hypervisor.openConsole((await this.vmi()).metadata.uid).catch(() => undefined);
    if (stream === undefined) return undefined;
    let output = '';
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => (output += chunk.toString('latin1')));
    stream.write(`${line}\n`);
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    stream.destroy();
    return pattern.test(output) || undefined;
  }

  async runCommand(line: string, pattern: RegExp): Promise<string> {
    const [node, ...more] = await this.#plane.awaitValue(`${this.name} to run`, async () => {
      const nodes = await this.runningNodes();
      return nodes.length > 0 ? nodes : undefined;
    });
    assert.ok(node !== undefined && more.length === 0, 'it runs on one node');
    const stream = await node.hypervisor.openConsole((await this.vmi()).metadata.uid);
    let output = '';
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => (output += chunk.toString('latin1')));
    try {
      stream.write(`${line}\n`);
      await this.#plane.awaitValue(
        `the answer of ${this.name} to "${line}"`,
        () => pattern.test(completeLines(output)) || undefined,
      );
      return output;
    } finally {
      stream.destroy();
    }
  }

  async probe(): Promise<GuestReport> {
    const tag = `look${++this.#generation}`;
    const output = await this.runCommand(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
    return lastReport(output, tag) ?? assert.fail(`no report in ${output}`);
  }

  /** Writes a new value to everything that outlives the guest and returns the state for a later comparison. */
  async writeState(): Promise<GuestState> {
    const text = `gen${++this.#generation}`;
    const endTag = `written${this.#generation}`;
    await this.runCommand(
      `nvset ${text}\npcrext\nefiset ${text}\nwrite vda ${text}\nprobe ${endTag}`,
      new RegExp(`GUEST END ${endTag}`),
    );
    return await this.memory();
  }

  async memory(): Promise<GuestState> {
    const { facts } = await this.probe();
    const output = await this.runCommand('read vda', /GUEST read vda \S+/);
    const disk = /GUEST read vda (\S+)/.exec(output)?.[1] ?? '';
    return { nv: facts['tpm.nv'], efi: facts['efi.var'], disk, pcr: facts['tpm.pcr12'], bootId: facts['bootid'] };
  }

  /**
   * Asserts that there is one guest, one claim with its state and one home of its disk, and that the objects agree
   * about its node.
   */
  async assertInvariants(): Promise<void> {
    const [node, ...more] = await this.runningNodes();
    assert.deepEqual(more, [], 'it runs once');
    const vmi = await this.vmi();
    assert.equal(vmi.status.nodeName, node?.name, 'the instance reports the node of the guest');
    assert.equal(vmi.metadata.labels['kubevirt.io/nodeName'], node?.name);
    const claims: Loose[] = (await this.#plane.api.ok('GET', `${CLAIMS}?labelSelector=${STATE_LABEL}%3D${this.name}`))
      .items;
    assert.equal(claims.length, 1, 'its state is in one claim');
    const volumes: Loose[] = (await this.#plane.api.ok('GET', '/api/v1/persistentvolumes')).items;
    for (const { metadata, spec } of volumes) {
      const claim: string = spec.claimRef.name;
      const isState = new RegExp(`^persistent-state-for-${this.name}-[a-z0-9]{5}$`).test(claim);
      if (claim !== `${this.name}-root` && !isState) continue;
      const home = metadata.annotations[VOLUME_NODE_ANNOTATION];
      if (home !== undefined) assert.equal(home, node?.name, `${claim} is on the node of the guest`);
    }
  }
}

export const VICTIMS = [
  'source agent',
  'target agent',
  'source guest',
  'target guest',
  'source node',
  'target node',
] as const;
export type Victim = (typeof VICTIMS)[number];

export interface Fault {
  /** The hypervisor call of the victim's side before or after which the victim is killed. */
  readonly at: readonly ['before' | 'after', string];
  readonly dies: Victim;
}

/**
 * Runs one migration during which the victim is killed and, a moment later, started again. Resolves when the migration
 * has ended.
 */
export async function migrateWithFault(
  plane: QemuPlane,
  guest: MigratingGuest,
  { at: [when, method], dies }: Fault,
): Promise<{ readonly outcome: string; readonly source: QemuNode; readonly target: QemuNode }> {
  const [source] = await guest.runningNodes();
  const target = plane.nodes.find((node) => node !== source);
  assert.ok(source !== undefined && target !== undefined);
  const victim = dies.startsWith('source') ? source : target;
  let isKilled = false;
  plane.onCall = (call) => {
    if (isKilled || call.when !== when || call.method !== method) return;
    isKilled = true;
    if (!dies.endsWith('agent')) victim.killGuests();
    if (!dies.endsWith('guest')) victim.crashAgent();
  };
  const name = await guest.startMigration();
  await plane.awaitValue(`the death of the ${dies}`, () => isKilled || undefined);
  if (!dies.endsWith('guest')) {
    await victim.killAgent();
    await victim.start();
  }
  const outcome = await guest.awaitMigration(name);
  plane.onCall = undefined;
  return { outcome, source, target };
}
