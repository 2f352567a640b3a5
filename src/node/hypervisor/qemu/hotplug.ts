/**
 * Disks and interfaces that come and go while the guest runs.
 *
 *   plug      written down ──► its medium, its network ──device_add──► there
 *                  └───────── one of them fails: undone, written off
 *   unplug    there ──device_del──► leaving ──DEVICE_DELETED──► medium and network given up, written off
 *               ▲                      └─ DEVICE_UNPLUG_GUEST_ERROR: it stays
 *               └──────────────────────┘
 *
 * What QEMU may have anything of is in the record. So whoever comes later, or does not know how a command ended, looks
 * at QEMU's object tree and clears away what has no device there (`settle`). What a device is made of is
 * device-parts.ts's.
 */
import type { DomainDefinition, Device, PluggableDevice } from '#node/definition/domain-definition.ts';
import { HypervisorError, type DomainInspection } from '../hypervisor.ts';
import { hintFor, isPermanent } from './complaint.ts';
import { isRefused } from './copy-jobs.ts';
import { setLink, type DeviceParts } from './device-parts.ts';
import { readDeviceTypes } from './learn.ts';
import { QmpError, type QmpClient, type QmpEvent } from './qmp.ts';

export interface HotplugOptions {
  readonly parts: DeviceParts;
  readonly definition: () => DomainDefinition;
  /** It is on disk when it resolves. */
  readonly write: (definition: DomainDefinition) => Promise<void>;
  /** Rejects where QEMU cannot be asked, or refuses. */
  readonly ask: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  /** Devices came, went or did something. */
  readonly changed: () => void;
  /** Calls `settle` soon, until that succeeds. */
  readonly settleSoon: () => void;
}

export class Hotplug {
  readonly #options: HotplugOptions;
  /** Written down, and nobody knows yet whether QEMU has them. */
  readonly #unsure = new Set<string>();
  readonly #leaving = new Set<string>();
  #events = 0;
  /** Steps of several devices would get in each other's way. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: HotplugOptions) {
    this.#options = options;
  }

  get events(): number {
    return this.#events;
  }

  /** Settles when nothing is under way any more; what QEMU no longer answers ends with the line to it. */
  get idle(): Promise<unknown> {
    return this.#queue;
  }

  get inspection(): DomainInspection {
    const definition = this.#options.definition();
    if (this.#unsure.size === 0) return { definition, leaving: [...this.#leaving] };
    const devices = definition.devices.filter(({ id }) => !this.#unsure.has(id));
    return { definition: { ...definition, devices }, leaving: [...this.#leaving] };
  }

  plug(device: PluggableDevice): Promise<void> {
    return this.#oneByOne(() =>
      this.#options.ask(`plug "${device.id}" into`, async (qmp) => {
        if (this.#unsure.size > 0) await this.#settle(qmp);
        if (this.#find(device.id) === undefined) await this.#plug(qmp, device);
      }),
    );
  }

  unplug(deviceId: string): Promise<void> {
    return this.#oneByOne(async () => {
      if (this.#find(deviceId) === undefined) return;
      await this.#options.ask(`unplug "${deviceId}" of`, async (qmp) => {
        if (this.#unsure.size > 0) await this.#settle(qmp);
        const device = this.#find(deviceId);
        if (device !== undefined) await this.#unplug(qmp, device);
      });
    });
  }

  /** The cable of an interface, pulled or put back. Fine where it is so already, or there is no such interface. */
  setLink(deviceId: string, link: 'up' | 'down'): Promise<void> {
    return this.#oneByOne(async () => {
      const nic = this.#find(deviceId);
      if (nic?.type !== 'interface' || (nic.link ?? 'up') === link) return;
      const { ask, definition, write } = this.#options;
      await ask(`set the link of "${deviceId}" of`, (qmp) => setLink(qmp, deviceId, link === 'up'));
      const { link: _was, ...rest } = nic;
      const next: Device = link === 'down' ? { ...rest, link } : rest;
      const now = definition();
      await write({ ...now, devices: now.devices.map((device) => (device.id === deviceId ? next : device)) });
      this.#tell();
    });
  }

  /** Of a QEMU that has just been started: it has no option for that. */
  async pullCables(): Promise<void> {
    const { ask, definition } = this.#options;
    const pulled = definition().devices.filter((device) => device.type === 'interface' && device.link === 'down');
    for (const { id } of pulled) await ask(`set the link of "${id}" of`, (qmp) => setLink(qmp, id, false));
  }

  /** Drops what QEMU does not have, with all that is left of it. For whoever may have missed events. */
  settle(): Promise<void> {
    return this.#oneByOne(async () => {
      if (!this.#options.definition().devices.some(isPluggable)) return;
      await this.#options.ask('look at the devices of', (qmp) => this.#settle(qmp));
    });
  }

  heard({ name, data }: QmpEvent): void {
    if (!name.startsWith('DEVICE_')) return;
    const device = this.#find(String(data['device'] || data['id']));
    if (device === undefined) return;
    if (name === 'DEVICE_UNPLUG_GUEST_ERROR') this.#leaving.delete(device.id);
    if (name === 'DEVICE_DELETED' && isPluggable(device)) this.#options.settleSoon();
    else this.#tell();
  }

  async #plug(qmp: QmpClient, device: PluggableDevice): Promise<void> {
    const { definition, write, parts } = this.#options;
    this.#unsure.add(device.id);
    try {
      const before = definition();
      await write({ ...before, devices: [...before.devices, device] });
      await parts.add(qmp, device, before.machine);
    } catch (error) {
      // Where it is not known what became of it, the next look at the object tree tells.
      if (isRefused(error)) await this.#undo(qmp, device).catch(() => this.#options.settleSoon());
      else this.#options.settleSoon();
      throw explained(error);
    }
    this.#unsure.delete(device.id);
    this.#tell();
  }

  async #unplug(qmp: QmpClient, device: Device): Promise<void> {
    if (!isPluggable(device)) throw new HypervisorError('it is there for good', { permanent: true });
    try {
      await qmp.execute('device_del', { id: device.id });
    } catch (error) {
      if (error instanceof QmpError && error.class === 'DeviceNotFound') return this.#settle(qmp);
      if (!isUnderWay(error)) throw explained(error);
    }
    this.#leaving.add(device.id);
  }

  async #settle(qmp: QmpClient): Promise<void> {
    const found = await readDeviceTypes(qmp);
    const faults: unknown[] = [];
    for (const device of this.#options.definition().devices.filter(isPluggable)) {
      const isThere = found.has(device.id);
      if (isThere && this.#unsure.delete(device.id)) this.#tell();
      // One that is still held (by a copy, for one) keeps no other from going.
      if (!isThere) await this.#drop(qmp, device).catch((error: unknown) => faults.push(error));
    }
    if (faults.length > 0) throw faults[0];
  }

  async #drop(qmp: QmpClient, device: PluggableDevice): Promise<void> {
    await this.#options.parts.clear(qmp, device);
    await this.#forget(device).finally(() => this.#tell());
  }

  async #undo(qmp: QmpClient, device: PluggableDevice): Promise<void> {
    await this.#options.parts.clear(qmp, device);
    await this.#forget(device);
  }

  async #forget(device: PluggableDevice): Promise<void> {
    const { definition, write } = this.#options;
    const now = definition();
    this.#unsure.delete(device.id);
    this.#leaving.delete(device.id);
    await write({ ...now, devices: now.devices.filter(({ id }) => id !== device.id) });
  }

  #tell(): void {
    this.#events++;
    this.#options.changed();
  }

  #find(deviceId: string): Device | undefined {
    return this.#options.definition().devices.find(({ id }) => id === deviceId);
  }

  #oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

function isPluggable(device: Device): device is PluggableDevice {
  return device.type === 'disk' || device.type === 'interface';
}

/** The guest was asked before, and takes its time. */
function isUnderWay(error: unknown): boolean {
  return error instanceof QmpError && /already in the process of unplug/.test(error.message);
}

function explained(cause: unknown): unknown {
  if (!(cause instanceof QmpError)) return cause;
  const { message } = cause;
  return new HypervisorError(`${message}${hintFor(message)}`, { cause, permanent: isPermanent(message) });
}
