/** One real guest with OVMF and a TPM on a QemuPlane: moved, asked what it sees, and judged by what must always hold. */
import assert from 'node:assert/strict';
import { GUEST_IMAGE, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/persistent-state.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import type { QemuNode, QemuPlane } from '#test/support/qemu-plane.ts';
import type { Loose } from '#test/support/test-api.ts';

/** Enough for a guest that listens, on a busy machine; one that does not is asked again. */
const ANSWER_MS = 2000;
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const MIGRATIONS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';

/** What must be the same as long as nobody starts the guest anew. */
export interface Memory {
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

  /** With a disk on a claim of that class; its state lies in what the KubeVirt object says. */
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
    return await this.booted('');
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
              memory: { guest: '256Mi' },
              firmware: {
                bootloader: { efi: { secureBoot: false, persistent: true } },
                kernelBoot: { kernelArgs: 'console=ttyS0 quiet', container: { image: GUEST_IMAGE } },
              },
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

  /** Its name. */
  async startMigration(): Promise<string> {
    const name = `${this.name}-${++this.#migrations}`;
    const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration', metadata: { name } };
    await this.#plane.api.ok('POST', MIGRATIONS, { body: { ...body, spec: { vmiName: this.name } } });
    return name;
  }

  /** `Succeeded`, or `Failed` with why. */
  async ended(name: string): Promise<string> {
    return await this.#plane.until(`migration ${name} has ended`, async () => {
      const { status = {} } = (await this.migration(name)) ?? {};
      if (status.phase === 'Succeeded') return 'Succeeded';
      return status.phase === 'Failed'
        ? `Failed: ${status.migrationState?.failureReason ?? status.message}`
        : undefined;
    });
  }

  async migrate(): Promise<void> {
    assert.equal(await this.ended(await this.startMigration()), 'Succeeded');
  }

  async cancel(name: string): Promise<void> {
    await this.#plane.api.ok('DELETE', `${MIGRATIONS}/${name}`);
  }

  async put(verb: string): Promise<void> {
    await this.#plane.api.ok(
      'PUT',
      `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/${this.name}/${verb}`,
      { body: {} },
    );
  }

  /** The nodes on which it runs: one, always. */
  async running(): Promise<QemuNode[]> {
    const uid: string = (await this.vmi())?.metadata.uid ?? '';
    return this.#plane.nodes.filter(
      (node) => node.agent !== undefined && node.hypervisor.get(uid)?.current.state === 'running',
    );
  }

  /** Resolves with the first report of a boot other than this one. */
  async booted(afterBootId: string): Promise<GuestReport> {
    return await this.#plane.until(`${this.name} has booted`, async () => {
      const [node] = await this.running();
      if (node === undefined) return undefined;
      const text = await node.hypervisor.readConsoleLog((await this.vmi()).metadata.uid).catch(() => Buffer.alloc(0));
      const report = lastReport(text.toString('latin1'));
      return report !== undefined && report.facts['bootid'] !== afterBootId ? report : undefined;
    });
  }

  /** It runs, has booted, and everybody agrees where. */
  async settled(): Promise<void> {
    await this.#plane.until(`${this.name} is settled`, async () => {
      const [node, ...more] = await this.running();
      const vmi = await this.vmi();
      if (node === undefined || more.length > 0 || vmi?.status?.nodeName !== node.name) return undefined;
      const phase: string = vmi.status.phase;
      return phase === 'Running' && vmi.metadata.deletionTimestamp === undefined ? true : undefined;
    });
    await this.#plane.until(`${this.name} answers`, async () => {
      const tag = `here${++this.#generation}`;
      // One that still boots does not hear what is typed.
      return await this.#answers(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
    });
  }

  async #answers(line: string, pattern: RegExp): Promise<true | undefined> {
    const [node] = await this.running();
    const stream = await node?.hypervisor.openConsole((await this.vmi()).metadata.uid).catch(() => undefined);
    if (stream === undefined) return undefined;
    let heard = '';
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
    stream.write(`${line}\n`);
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    stream.destroy();
    return pattern.test(heard) || undefined;
  }

  async says(line: string, pattern: RegExp): Promise<string> {
    const [node, ...more] = await this.#plane.until(`${this.name} runs`, async () => {
      const nodes = await this.running();
      return nodes.length > 0 ? nodes : undefined;
    });
    assert.ok(node !== undefined && more.length === 0, 'it runs on one node');
    const stream = await node.hypervisor.openConsole((await this.vmi()).metadata.uid);
    let heard = '';
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
    try {
      stream.write(`${line}\n`);
      await this.#plane.until(`${this.name} answers "${line}"`, () => pattern.test(heard) || undefined);
      return heard;
    } finally {
      stream.destroy();
    }
  }

  async probe(): Promise<GuestReport> {
    const tag = `look${++this.#generation}`;
    const heard = await this.says(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
    return lastReport(heard, tag) ?? assert.fail(`no report in ${heard}`);
  }

  /** Writes something new in everything that outlives it: whatever is found later is compared with this. */
  async write(): Promise<Memory> {
    const text = `gen${++this.#generation}`;
    const done = `written${this.#generation}`;
    await this.says(
      `nvset ${text}\npcrext\nefiset ${text}\nwrite vda ${text}\nprobe ${done}`,
      new RegExp(`GUEST END ${done}`),
    );
    return await this.memory();
  }

  async memory(): Promise<Memory> {
    const { facts } = await this.probe();
    const heard = await this.says('read vda', /GUEST read vda \S+/);
    const disk = /GUEST read vda (\S+)/.exec(heard)?.[1] ?? '';
    return { nv: facts['tpm.nv'], efi: facts['efi.var'], disk, pcr: facts['tpm.pcr12'], bootId: facts['bootid'] };
  }

  /** One guest, one claim of its state, one home of its disk, and objects that agree with where it is. */
  async judge(): Promise<void> {
    const [node, ...more] = await this.running();
    assert.deepEqual(more, [], 'it runs once');
    const vmi = await this.vmi();
    assert.equal(vmi.status.nodeName, node?.name, 'the instance knows its node');
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
      if (home !== undefined) assert.equal(home, node?.name, `${claim} lies where it runs`);
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

export interface Strike {
  /** At the side that calls it: before or after it. */
  readonly at: readonly ['before' | 'after', string];
  readonly dies: Victim;
}

/** One migration in which somebody dies, and comes back a moment later; resolves when it has ended. */
export async function strike(
  plane: QemuPlane,
  guest: MigratingGuest,
  { at: [when, method], dies }: Strike,
): Promise<{ readonly outcome: string; readonly source: QemuNode; readonly target: QemuNode }> {
  const [source] = await guest.running();
  const target = plane.nodes.find((node) => node !== source);
  assert.ok(source !== undefined && target !== undefined);
  const victim = dies.startsWith('source') ? source : target;
  let struck = false;
  plane.seen = (call) => {
    if (struck || call.when !== when || call.method !== method) return;
    struck = true;
    if (!dies.endsWith('agent')) victim.killGuests();
    if (!dies.endsWith('guest')) victim.slam();
  };
  const name = await guest.startMigration();
  await plane.until('somebody died', () => struck || undefined);
  if (!dies.endsWith('guest')) {
    await victim.kill();
    await victim.start();
  }
  const outcome = await guest.ended(name);
  plane.seen = undefined;
  return { outcome, source, target };
}
