/**
 * Hotplug of disks and interfaces.
 *
 *   plug      recorded ──► medium or network added ──device_add──► plugged
 *                  └───────── a step fails: undone, removed from the record
 *   unplug    plugged ──device_del──► leaving ──DEVICE_DELETED──► medium or network removed, removed from the record
 *               ▲                      └─ DEVICE_UNPLUG_GUEST_ERROR: it stays
 *               └──────────────────────┘
 *
 * The record contains every device of which QEMU may have any part. A process that starts later, or that does not know
 * how a command ended, compares it with QEMU's object tree and removes the parts without a device (`reconcile`). The
 * parts of a device are in device-parts.ts.
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
  /** The definition is on disk when it resolves. */
  readonly write: (definition: DomainDefinition) => Promise<void>;
  /** Rejects if QEMU cannot be reached or refuses. */
  readonly ask: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  /** Called after each event of a device. */
  readonly changed: () => void;
  /** Calls `reconcile` soon, and retries until it succeeds. */
  readonly settleSoon: () => void;
}

export class Hotplug {
  readonly #options: HotplugOptions;
  /** Devices that are recorded, but QEMU may not have them. */
  readonly #unsure = new Set<string>();
  readonly #leaving = new Set<string>();
  #events = 0;
  /** Serialises the steps of all devices. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: HotplugOptions) {
    this.#options = options;
  }

  get events(): number {
    return this.#events;
  }

  /** Resolves when no step is running. A step that QEMU does not answer ends when its connection closes. */
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

  /** Sets the link of an interface. Does nothing if the link is in that state already or there is no such interface. */
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

  /** Sets links down in a new QEMU, which has no command-line option for that. */
  async pullCables(): Promise<void> {
    const { ask, definition } = this.#options;
    const pulled = definition().devices.filter((device) => device.type === 'interface' && device.link === 'down');
    for (const { id } of pulled) await ask(`set the link of "${id}" of`, (qmp) => setLink(qmp, id, false));
  }

  /**
   * Removes recorded devices that QEMU does not have, with all their parts. For processes that may have missed events.
   */
  settle(): Promise<void> {
    return this.#oneByOne(async () => {
      if (!this.#options.definition().devices.some(isPluggable)) return;
      await this.#options.ask('read the devices of', (qmp) => this.#settle(qmp));
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
      // If it is unknown whether QEMU has the device, the object tree tells when reconciling.
      if (isRefused(error)) await this.#undo(qmp, device).catch(() => this.#options.settleSoon());
      else this.#options.settleSoon();
      throw explained(error);
    }
    this.#unsure.delete(device.id);
    this.#tell();
  }

  async #unplug(qmp: QmpClient, device: Device): Promise<void> {
    if (!isPluggable(device)) throw new HypervisorError('the device does not support hotplug', { permanent: true });
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
      // A device that is still in use, for example by a copy, must not block the others.
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

/** Reports whether the guest was asked before and has not released the device yet. */
function isUnderWay(error: unknown): boolean {
  return error instanceof QmpError && /already in the process of unplug/.test(error.message);
}

function explained(cause: unknown): unknown {
  if (!(cause instanceof QmpError)) return cause;
  const { message } = cause;
  return new HypervisorError(`${message}${hintFor(message)}`, { cause, permanent: isPermanent(message) });
}
