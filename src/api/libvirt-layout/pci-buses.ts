/**
 * Fills the PCI buses of a guest as libvirt does: a device takes the first free slot of the first bus that accepts it;
 * if there is none, a bus is added. i440fx has a single bus. On q35 a PCI Express device gets a root port of its own,
 * and conventional devices share a bridge behind a root port. A bus is numbered by the index of its controller, as in
 * libvirt's addresses. Holds the state of one layout; place-on-pci.ts decides the order of devices.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { PciAddress } from '#api/devices/pci-address.ts';

/** The kind of slot that a device needs. */
export type Slot = 'pci' | 'pcie';

/** `bridge`: pcie-to-pci-bridge. `port-of-bridge`: a root port that is reserved for the bridge. */
export type BusModel = 'pci-root' | 'pcie-root' | 'root-port' | 'port-of-bridge' | 'bridge';

const LAST_SLOT = 0x1f;
const MAX_BUSES = 256;

class Bus {
  readonly model: BusModel;
  readonly #functions = new Map<number, Set<number>>();

  constructor(model: BusModel) {
    this.model = model;
  }

  get firstSlot(): number {
    return this.isPort ? 0 : 1;
  }

  get isPort(): boolean {
    return this.model === 'root-port' || this.model === 'port-of-bridge';
  }

  accepts(slot: Slot): boolean {
    return slot === 'pcie' ? this.model === 'root-port' : this.model === 'pci-root' || this.model === 'bridge';
  }

  isTaken(slot: number): boolean {
    return this.#functions.has(slot);
  }

  take(slot: number, fn: number): void {
    const functions = this.#functions.get(slot) ?? new Set();
    this.#functions.set(slot, functions.add(fn));
  }

  freeSlot(): number | undefined {
    const last = this.isPort ? 0 : LAST_SLOT;
    for (let slot = this.firstSlot; slot <= last; slot++) if (!this.isTaken(slot)) return slot;
    return undefined;
  }
}

export class PciBuses {
  readonly #buses: Bus[];
  readonly #canGrow: boolean;

  /** `models` are the buses other than the root bus, by index from 1. */
  constructor(chipset: Chipset, models: readonly BusModel[] = []) {
    this.#buses = [new Bus(chipset === 'q35' ? 'pcie-root' : 'pci-root'), ...models.map((model) => new Bus(model))];
    this.#canGrow = chipset === 'q35';
  }

  /** The models of the buses other than the root bus. */
  get models(): readonly BusModel[] {
    return this.#buses.slice(1).map(({ model }) => model);
  }

  isTaken({ bus, slot }: PciAddress): boolean {
    return this.#buses[bus]?.isTaken(slot) === true;
  }

  /** Marks an address as taken. On q35, missing buses up to that one are added as root ports. */
  take({ bus, slot, function: fn }: PciAddress): void {
    if (bus >= MAX_BUSES) return;
    while (this.#canGrow && this.#buses.length <= bus) this.#buses.push(new Bus('root-port'));
    this.#buses[bus]?.take(slot, fn);
  }

  /** Takes the next free slot for a device. Returns undefined if there is none. */
  takeNext(slot: Slot, fn = 0): PciAddress | undefined {
    const address = this.#find((bus) => bus.accepts(slot)) ?? this.#grow(slot);
    if (address === undefined) return undefined;
    this.take({ ...address, function: fn });
    return { ...address, function: fn };
  }

  /** Takes the port that the bridge is plugged into: the first free one. */
  takePortForBridge(): void {
    const address = this.#find((bus) => bus.isPort);
    if (address !== undefined) this.take(address);
  }

  #find(accepts: (bus: Bus) => boolean): PciAddress | undefined {
    for (const [index, bus] of this.#buses.entries()) {
      const slot = accepts(bus) ? bus.freeSlot() : undefined;
      if (slot !== undefined) return { domain: 0, bus: index, slot, function: 0 };
    }
    return undefined;
  }

  #grow(slot: Slot): PciAddress | undefined {
    if (!this.#canGrow || this.#buses.length + 2 > MAX_BUSES) return undefined;
    if (slot === 'pcie') this.#buses.push(new Bus('root-port'));
    // libvirt would put a second bridge behind the first, which is not supported.
    else if (this.#buses.some(({ model }) => model === 'bridge')) return undefined;
    else this.#buses.push(new Bus('port-of-bridge'), new Bus('bridge'));
    const bus = this.#buses.length - 1;
    return { domain: 0, bus, slot: this.#buses[bus]?.firstSlot ?? 0, function: 0 };
  }
}
