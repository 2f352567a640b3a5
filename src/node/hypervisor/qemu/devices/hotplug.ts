/**
 * Hotplug of disks and interfaces.
 *
 *   plug      recorded ──► medium or network added ──device_add──► plugged
 *                  └───────── a step fails: undone, removed from the record
 *   unplug    plugged ──device_del──► unplugging ──DEVICE_DELETED──► medium or network removed, removed from the record
 *               ▲                         └─ DEVICE_UNPLUG_GUEST_ERROR: it stays
 *               └─────────────────────────┘
 *
 * The record contains every device of which QEMU may have any part. A process that starts later, or that does not know
 * how a command ended, compares it with QEMU's object tree and removes the parts without a device (`reconcile`). The
 * parts of a device are in device-parts.ts.
 */
import type { DomainDefinition, Device, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { HypervisorError, type DomainInspection } from '#node/hypervisor/hypervisor.ts';
import { hintFor, isPermanentError } from '#node/hypervisor/qemu/process/process-log.ts';
import { diskProblemOf } from '#node/hypervisor/qemu/disks/disk-problem.ts';
import { isQemuRefusal } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import { setLink, type DeviceParts } from '#node/hypervisor/qemu/devices/device-parts.ts';
import { readDeviceTypes } from '#node/hypervisor/qemu/devices/learn.ts';
import { asText, QmpError, type QmpClient, type QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';

interface HotplugOptions {
  readonly parts: DeviceParts;
  readonly definition: () => DomainDefinition;
  /** The definition is on disk when it resolves. */
  readonly write: (definition: DomainDefinition) => Promise<void>;
  /** Rejects if QEMU cannot be reached or refuses. */
  readonly withQmp: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  /** Called after each event of a device. */
  readonly onChange: () => void;
  /** Calls `reconcile` soon, and retries until it succeeds. */
  readonly reconcileSoon: () => void;
}

export class Hotplug {
  readonly #options: HotplugOptions;
  /** Devices that are recorded, but QEMU may not have them. */
  readonly #unconfirmed = new Set<string>();
  readonly #unplugging = new Set<string>();
  #events = 0;
  /** Serializes the steps of all devices. */
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
    if (this.#unconfirmed.size === 0) return { definition, unplugging: [...this.#unplugging] };
    const devices = definition.devices.filter(({ id }) => !this.#unconfirmed.has(id));
    return { definition: { ...definition, devices }, unplugging: [...this.#unplugging] };
  }

  plug(device: PluggableDevice): Promise<void> {
    return this.#enqueue(() =>
      this.#options.withQmp(`plug "${device.id}" into`, async (qmp) => {
        if (this.#unconfirmed.size > 0) await this.#reconcile(qmp);
        if (this.#find(device.id) === undefined) await this.#plug(qmp, device);
      }),
    );
  }

  unplug(deviceId: string): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#find(deviceId) === undefined) return;
      await this.#options.withQmp(`unplug "${deviceId}" of`, async (qmp) => {
        if (this.#unconfirmed.size > 0) await this.#reconcile(qmp);
        const device = this.#find(deviceId);
        if (device !== undefined) await this.#unplug(qmp, device);
      });
    });
  }

  /** Sets the link of an interface. Does nothing if the link is in that state already or there is no such interface. */
  setLink(deviceId: string, link: 'up' | 'down'): Promise<void> {
    return this.#enqueue(async () => {
      const nic = this.#find(deviceId);
      if (nic?.type !== 'interface' || (nic.link ?? 'up') === link) return;
      const { withQmp, definition, write } = this.#options;
      await withQmp(`set the link of "${deviceId}" of`, (qmp) => setLink(qmp, deviceId, link === 'up'));
      const { link: _was, ...rest } = nic;
      const next: Device = link === 'down' ? { ...rest, link } : rest;
      const now = definition();
      await write({ ...now, devices: now.devices.map((device) => (device.id === deviceId ? next : device)) });
      this.#notify();
    });
  }

  /** Sets links down in a new QEMU, which has no command-line option for that. */
  async setLinksDown(): Promise<void> {
    const { withQmp, definition } = this.#options;
    const interfaces = definition().devices.filter((device) => device.type === 'interface' && device.link === 'down');
    for (const { id } of interfaces) await withQmp(`set the link of "${id}" of`, (qmp) => setLink(qmp, id, false));
  }

  /**
   * Removes recorded devices that QEMU does not have, with all their parts. For processes that may have missed events.
   */
  reconcile(): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#options.definition().devices.some(isPluggable)) return;
      await this.#options.withQmp('read the devices of', (qmp) => this.#reconcile(qmp));
    });
  }

  onEvent({ name, data }: QmpEvent): void {
    if (!name.startsWith('DEVICE_')) return;
    const device = this.#find(asText(data['device'] || data['id']));
    if (device === undefined) return;
    if (name === 'DEVICE_UNPLUG_GUEST_ERROR') this.#unplugging.delete(device.id);
    if (name === 'DEVICE_DELETED' && isPluggable(device)) this.#options.reconcileSoon();
    else this.#notify();
  }

  async #plug(qmp: QmpClient, device: PluggableDevice): Promise<void> {
    const { definition, write, parts } = this.#options;
    this.#unconfirmed.add(device.id);
    try {
      const before = definition();
      await write({ ...before, devices: [...before.devices, device] });
      await parts.add(qmp, device, before.machine);
    } catch (error) {
      // If it is unknown whether QEMU has the device, the object tree tells when reconciling.
      if (isQemuRefusal(error)) await this.#undo(qmp, device).catch(() => this.#options.reconcileSoon());
      else this.#options.reconcileSoon();
      throw explainError(error, device);
    }
    this.#unconfirmed.delete(device.id);
    this.#notify();
  }

  async #unplug(qmp: QmpClient, device: Device): Promise<void> {
    if (!isPluggable(device)) throw new HypervisorError('the device does not support hotplug', { permanent: true });
    try {
      await qmp.execute('device_del', { id: device.id });
    } catch (error) {
      if (error instanceof QmpError && error.class === 'DeviceNotFound') return this.#reconcile(qmp);
      if (!isAlreadyUnplugging(error)) throw explainError(error);
    }
    this.#unplugging.add(device.id);
  }

  async #reconcile(qmp: QmpClient): Promise<void> {
    const found = await readDeviceTypes(qmp);
    const errors: unknown[] = [];
    for (const device of this.#options.definition().devices.filter(isPluggable)) {
      const isPresent = found.has(device.id);
      if (isPresent && this.#unconfirmed.delete(device.id)) this.#notify();
      // A device that is still in use, for example by a copy, must not block the others.
      if (!isPresent) await this.#drop(qmp, device).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }

  async #drop(qmp: QmpClient, device: PluggableDevice): Promise<void> {
    await this.#options.parts.clear(qmp, device);
    await this.#forget(device).finally(() => this.#notify());
  }

  async #undo(qmp: QmpClient, device: PluggableDevice): Promise<void> {
    await this.#options.parts.clear(qmp, device);
    await this.#forget(device);
  }

  async #forget(device: PluggableDevice): Promise<void> {
    const { definition, write } = this.#options;
    const now = definition();
    this.#unconfirmed.delete(device.id);
    this.#unplugging.delete(device.id);
    await write({ ...now, devices: now.devices.filter(({ id }) => id !== device.id) });
  }

  #notify(): void {
    this.#events++;
    this.#options.onChange();
  }

  #find(deviceId: string): Device | undefined {
    return this.#options.definition().devices.find(({ id }) => id === deviceId);
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

function isPluggable(device: Device): device is PluggableDevice {
  return device.type === 'disk' || device.type === 'interface';
}

/** Reports whether the guest was asked before and has not released the device yet. */
function isAlreadyUnplugging(error: unknown): boolean {
  return error instanceof QmpError && /already in the process of unplug/.test(error.message);
}

function explainError(cause: unknown, device?: PluggableDevice): unknown {
  if (!(cause instanceof QmpError)) return cause;
  const { message } = cause;
  const disk = device && diskProblemOf(device, message);
  const permanent = isPermanentError(message) || disk?.is === 'damaged';
  return new HypervisorError(`${message}${hintFor(message)}`, { cause, permanent, disk });
}
