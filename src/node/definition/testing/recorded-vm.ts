/**
 * A VM for property tests: a template, the running guest, and a record that is maintained as controllers/device-map
 * does. Each operation returns whether it changed anything; `check` must hold after each of them.
 */
import assert from 'node:assert/strict';
import type { Chipset } from '#api/devices/chipset.ts';
import type { Devices } from '#api/domain/devices.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import { isFixedDeviceId } from '#api/devices/fixed-devices.ts';
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/devices/learned-device.ts';
import { readKnownDevices, type KnownDevices } from '#api/devices/known-devices.ts';
import { identityDiff } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { layoutOf } from '#node/definition/addresses/layouts.ts';
import { parsePlace } from '#node/definition/addresses/place-devices.ts';
import type { HotplugPlacement } from '#node/definition/addresses/place-hotplugged.ts';
import { deviceBusOf } from '#node/definition/addresses/device-places.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { defineHotplugDisk, defineHotplugInterface } from '#node/definition/define-hotplug.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

/** Low enough that places do not run out; otherwise the place of a device that is gone would be reused. */
const MAX_NICS = 8;
const MAX_DISKS = 10;
const MACHINES: Readonly<Record<Chipset, readonly string[]>> = {
  q35: ['pc-q35-6.2', 'pc-q35-7.2'],
  i440fx: ['pc-i440fx-6.2', 'pc-i440fx-7.2'],
};
const USB: Omit<Disk, 'name'> = { disk: { bus: 'usb' } };
const DISKS: Readonly<Record<Chipset, readonly Omit<Disk, 'name'>[]>> = {
  q35: [{}, { disk: { bus: 'scsi' } }, { disk: { bus: 'sata' } }, { cdrom: {} }, { cdrom: { bus: 'scsi' } }, USB],
  i440fx: [{}, { disk: { bus: 'scsi' } }, { disk: { bus: 'ide' } }, { cdrom: {} }, { floppy: {} }, USB],
};
/** Low enough that SATA, IDE and floppy units do not run out. */
const MAX_OF_A_KIND = 2;
/** Low enough that places do not run out: the record of a VM remembers more. */
const MAX_FREED = 6;
/** Optional hardware of a template, each at most once. */
const HARDWARE: readonly Devices[] = [
  { autoattachGraphicsDevice: true },
  { video: { type: 'virtio' } },
  { sound: { name: 's' } },
  { watchdog: { name: 'w', i6300esb: {} } },
  { inputs: [{ name: 'usb', type: 'tablet' }] },
  { inputs: [{ name: 'virtio', type: 'tablet', bus: 'virtio' }] },
  { clientPassthrough: {} },
];
const MODELS: readonly Interface['model'][] = [undefined, 'e1000e', 'rtl8139', 'pcnet'];

export class RecordedVm {
  readonly #chipset: Chipset;
  #machine: string;
  #disks: readonly Disk[] = [];
  #nics: readonly Interface[] = [];
  readonly #hardware = new Set<number>();
  #made = 0;
  #record: { readonly machine?: string; readonly devices: readonly LearnedDevice[] } = { devices: [] };
  /** Rows of removed disks and interfaces. */
  #freed: readonly LearnedDevice[] = [];
  #guest: DomainDefinition | undefined;
  /** True if the rows come from another manager, and the guest has not run here yet. */
  #isImported = false;
  /** The number of ports and controllers that starts after the first one added. */
  addedControllers = 0;
  /** The first address of every device that still exists. */
  readonly #places = new Map<string, DeviceAddress>();

  constructor(chipset: Chipset) {
    this.#chipset = chipset;
    this.#machine = MACHINES[chipset][0] ?? '';
  }

  /** Adds an interface: hotplugged, or at the next start. */
  addNic(pick: number): boolean {
    if (this.#nics.length >= MAX_NICS) return false;
    const model = MODELS[pick % MODELS.length];
    const nic: Interface = { name: `n${this.#made++}`, ...(model !== undefined && { model }) };
    this.#nics = [...this.#nics, nic];
    if (pick % 2 === 0) this.#plugNic(nic);
    return true;
  }

  addDisk(pick: number): boolean {
    const kinds = DISKS[this.#chipset];
    const number = pick % kinds.length;
    const isFull = this.#disks.filter(({ name }) => name.startsWith(`k${number}-`)).length >= MAX_OF_A_KIND;
    if (isFull || this.#disks.length >= MAX_DISKS) return false;
    const disk = { ...kinds[number], name: `k${number}-${this.#made++}` };
    this.#disks = [...this.#disks, disk];
    if (pick % 3 === 0) this.#plugDisk(disk);
    return true;
  }

  /** Detaches the interface, which deletes its row. */
  removeNic(pick: number): boolean {
    const nic = this.#nics[pick % Math.max(1, this.#nics.length)];
    if (nic === undefined) return false;
    this.#nics = this.#nics.filter((other) => other !== nic);
    this.#forget(`nic-${nic.name}`);
    return true;
  }

  removeDisk(pick: number): boolean {
    const disk = this.#disks[pick % Math.max(1, this.#disks.length)];
    if (disk === undefined) return false;
    this.#disks = this.#disks.filter((other) => other !== disk);
    this.#forget(`disk-${disk.name}`);
    return true;
  }

  /** Unplugs an interface, which keeps its place. */
  unplugNic(pick: number): boolean {
    const here = this.#nics.filter(({ state }) => state !== 'absent');
    const nic = here[pick % Math.max(1, here.length)];
    if (nic === undefined) return false;
    this.#nics = this.#nics.map((other) => (other === nic ? { ...nic, state: 'absent' } : other));
    this.#release(`nic-${nic.name}`);
    return true;
  }

  replugNic(pick: number): boolean {
    const away = this.#nics.filter(({ state }) => state === 'absent');
    const nic = away[pick % Math.max(1, away.length)];
    if (nic === undefined) return false;
    const { state: _away, ...back } = nic;
    this.#nics = this.#nics.map((other) => (other === nic ? back : other));
    this.#plugNic(back);
    return true;
  }

  /** Unplugs a disk, which loses its place. */
  unplugDisk(pick: number): boolean {
    const here = this.#disks.filter(({ plugged }) => plugged !== false);
    const disk = here[pick % Math.max(1, here.length)];
    if (disk === undefined) return false;
    this.#disks = this.#disks.map((other) => (other === disk ? { ...disk, plugged: false } : other));
    this.#forget(`disk-${disk.name}`);
    return true;
  }

  replugDisk(pick: number): boolean {
    const away = this.#disks.filter(({ plugged }) => plugged === false);
    const disk = away[pick % Math.max(1, away.length)];
    if (disk === undefined) return false;
    this.#disks = this.#disks.map((other) => (other === disk ? { ...disk, plugged: true } : other));
    if (pick % 2 === 0) this.#plugDisk(disk);
    return true;
  }

  /** Adds an interface whose spec names a free place. No other device may get that place, even before it is plugged. */
  pinNic(pick: number): boolean {
    const { pci } = layoutOf(this.#chipset);
    const occupied = new Set(this.#record.devices.flatMap(({ address }) => (address && pci.placeOf(address)) ?? []));
    const free = pci.defaultPlaces.filter((place) => !occupied.has(place));
    const place = free[pick % Math.max(1, free.length)];
    const isNamed = this.#nics.some(({ pciAddress }) => place !== undefined && pciAddress === pci.print(place));
    if (place === undefined || isNamed || this.#nics.length >= MAX_NICS) return false;
    const nic = { name: `n${this.#made++}`, pciAddress: pci.print(place) };
    this.#nics = [...this.#nics, nic];
    if (pick % 2 === 0) this.#plugNic(nic);
    return true;
  }

  /** Changes the model of an interface, which may then have to be on another bus, and starts the guest with it. */
  changeModel(pick: number): boolean {
    const here = this.#nics.filter(({ state, pciAddress }) => state !== 'absent' && pciAddress === undefined);
    const nic = here[pick % Math.max(1, here.length)];
    const model = MODELS[Math.floor(pick / 8) % MODELS.length];
    if (nic === undefined || nic.model === model) return false;
    const { model: _before, ...rest } = nic;
    const changed = { ...rest, ...(model !== undefined && { model }) };
    this.#nics = this.#nics.map((other) => (other === nic ? changed : other));
    this.#places.delete(`nic-${nic.name}`);
    return this.restart();
  }

  reorder(pick: number): boolean {
    const rotate = <T>(list: readonly T[]) => [
      ...list.slice(pick % (list.length + 1)),
      ...list.slice(0, pick % (list.length + 1)),
    ];
    this.#nics = rotate(this.#nics);
    this.#disks = rotate(this.#disks).toReversed();
    return this.#nics.length + this.#disks.length > 1;
  }

  /** Adds or removes hardware with the next start. */
  changeHardware(pick: number): boolean {
    const number = pick % HARDWARE.length;
    if (!this.#hardware.delete(number)) this.#hardware.add(number);
    return true;
  }

  changeMachine(pick: number): boolean {
    const machine = MACHINES[this.#chipset][pick % 2] ?? '';
    const isOther = machine !== this.#machine;
    this.#machine = machine;
    return isOther;
  }

  /** Exports the VM in a format that lists no root ports, imports it as another VM, and starts that. */
  reimport(): boolean {
    const guest = this.#running();
    const devices = this.#record.devices.filter((row) => !isRootPort(row));
    if (devices.length === 0) return false;
    this.#record = { ...this.#record, devices };
    this.#guest = { ...guest, devices: guest.devices.filter(({ type }) => type !== 'root-port') };
    this.#isImported = true;
    this.restart();
    return true;
  }

  restart(): boolean {
    const input = anInput(this.#vmi(), { known: this.#known() });
    const machines = MACHINES[this.#chipset].map((name) => ({ name, deprecated: false, maxCpus: 255 }));
    const { definition, problems } = defineDomain({ ...input, capabilities: { ...input.capabilities, machines } });
    assert.deepEqual(problems, undefined);
    const gone = this.#gone(definition);
    if (!this.#isImported) this.#checkPorts(definition);
    this.#checkDiff(definition);
    this.#isImported = false;
    this.#guest = definition;
    this.#learn();
    for (const id of gone) this.#forget(id);
    return true;
  }

  check(): void {
    const { devices = [] } = this.#guest ?? {};
    const ports = new Set(devices.flatMap((device) => (device.type === 'root-port' ? [device.index] : [])));
    const seen = new Map<string, string>();
    for (const device of devices) {
      if (device.address === undefined || device.type === 'root-port') continue;
      const place = placeOf(device, this.#chipset);
      assert.ok(place !== undefined, `${device.id} has a place in the layout`);
      assert.equal(seen.get(place.key), undefined, `${device.id} shares its place with no other device`);
      seen.set(place.key, device.id);
      if (place.port !== undefined) assert.ok(ports.has(place.port), `${device.id} has its port`);
      const before = this.#places.get(device.id);
      if (before !== undefined) assert.deepEqual(device.address, before, `${device.id} has moved`);
      this.#places.set(device.id, device.address);
    }
    for (const { name, state } of this.#nics) {
      const before = this.#places.get(`nic-${name}`);
      if (state !== 'absent' || before === undefined) continue;
      const holder = devices.find(({ address }) => JSON.stringify(address) === JSON.stringify(before));
      assert.equal(holder?.id, undefined, `the place of ${name} is kept`);
    }
  }

  /** Ports come only with a device that needs one of them, or with an address in the spec. */
  #checkPorts(next: DomainDefinition | undefined): void {
    if (this.#guest === undefined || next === undefined) return;
    const { pci } = layoutOf(this.#chipset);
    const portsOf = ({ devices }: DomainDefinition) => devices.filter(({ type }) => type === 'root-port').length;
    const before = portsOf(this.#guest);
    const used = next.devices.flatMap(({ address, type }) =>
      address === undefined || type === 'root-port' ? [] : (pci.placeOf(address) ?? []),
    );
    const needsMore = used.some((place) => pci.isPluggable(place) && place >= before);
    const isNamed = this.#nics.some(
      ({ pciAddress = '' }) => (parsePlace(pciAddress, layoutOf(this.#chipset)) ?? 0) >= before,
    );
    if (!needsMore && !isNamed) assert.equal(portsOf(next), before, 'the guest has the same ports');
  }

  /** The diff of the identity announces exactly the controllers and ports that the start adds. */
  #checkDiff(next: DomainDefinition | undefined): void {
    if (this.#guest === undefined || next === undefined) return;
    const controllersOf = (guest: DomainDefinition) =>
      toLearnedDevices(guest).flatMap(({ id, type }) => (type === 'controller' ? [id] : []));
    const before = new Set(controllersOf(this.#guest));
    const added = controllersOf(next).filter((id) => !before.has(id));
    this.addedControllers += added.length;
    const ids = new Set([...before, ...controllersOf(next)]);
    const announced = this.#diff().filter(({ what }) => ids.has(what) || what.startsWith('rp'));
    assert.deepEqual(announced.map(({ what }) => what).toSorted(), added.toSorted(), 'the diff announces what comes');
  }

  #diff(): ReturnType<typeof identityDiff> {
    const { metadata, spec } = this.#vmi();
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: metadata.name, uid: metadata.uid };
    const vm: Stored<VirtualMachine> = {
      apiVersion: owner.apiVersion,
      kind: owner.kind,
      metadata,
      spec: { runStrategy: 'Halted', template: { spec } },
    };
    const record: VirtualMachineIdentity = {
      apiVersion: 'identity.selfsame.io/v1',
      kind: 'VirtualMachineIdentity',
      metadata: { name: metadata.name, ownerReferences: [{ ...owner, controller: true }] },
      spec: {},
      status: this.#status(),
    };
    return identityDiff({ vm, record, configuration: configurationOf(undefined) });
  }

  #status(): IdentityStatus {
    const { machine, devices } = this.#record;
    return {
      ...(machine !== undefined && { machine: { type: machine } }),
      devices: [...devices],
      freed: [...this.#freed],
      ...(!this.#isImported && { learnedAt: '2026-01-01T00:00:00Z' }),
    };
  }

  #known(): KnownDevices {
    return readKnownDevices(this.#status());
  }

  #plugNic({ name }: Interface): void {
    this.#plug(defineHotplugInterface({ vmi: this.#vmi(), name, current: this.#running(), known: this.#known() }));
  }

  /** Plugs the disk in. A disk that cannot be hotplugged is added at the next start. */
  #plugDisk({ name }: Disk): void {
    const medium = { source: { path: `/data/${name}.img`, format: 'raw' as const }, readonly: false };
    this.#plug(defineHotplugDisk({ vmi: this.#vmi(), name, current: this.#running(), known: this.#known(), medium }));
  }

  #plug({ device }: HotplugPlacement): void {
    if (device === undefined) return;
    const guest = this.#running();
    this.#guest = { ...guest, devices: [...guest.devices, device] };
    this.#learn();
  }

  /** The guest releases the device; the row stays and is marked as unplugged. */
  #release(id: string): void {
    const guest = this.#running();
    this.#guest = { ...guest, devices: guest.devices.filter((device) => device.id !== id) };
    const devices = this.#record.devices.map((row) => (row.id === id ? { ...row, plugged: false } : row));
    this.#record = { ...this.#record, devices };
  }

  #forget(id: string): void {
    this.#release(id);
    const isRemembered = (row: LearnedDevice) => row.id === id && (row.type === 'disk' || row.type === 'interface');
    this.#freed = [...this.#freed, ...this.#record.devices.filter(isRemembered)].slice(-MAX_FREED);
    this.#record = { ...this.#record, devices: this.#record.devices.filter((row) => row.id !== id) };
    this.#places.delete(id);
  }

  #learn(): void {
    const guest = this.#running();
    const learned: LearnedDevice[] = toLearnedDevices(guest);
    const ids = new Set(learned.map(({ id }) => id));
    const kept = this.#record.devices.filter(({ id }) => !ids.has(id));
    this.#record = { machine: guest.machine, devices: [...learned, ...kept] };
    this.#freed = this.#freed.filter(({ id }) => !ids.has(id));
  }

  /**
   * Returns the fixtures that the template no longer asks for; they are removed from the record, as in
   * controllers/device-map.
   */
  #gone(next: DomainDefinition | undefined): string[] {
    const ids = new Set(next?.devices.map(({ id }) => id));
    return this.#record.devices.map(({ id }) => id).filter((id) => isFixedDeviceId(id) && !ids.has(id));
  }

  #running(): DomainDefinition {
    assert.ok(this.#guest !== undefined, 'the guest runs');
    return this.#guest;
  }

  #vmi() {
    const [disks, interfaces] = [[...this.#disks], [...this.#nics]];
    const wanted = [...this.#hardware].map((number) => HARDWARE[number] ?? {});
    const inputs = wanted.flatMap((devices) => devices.inputs ?? []);
    const hardware: Devices = { ...Object.assign({}, ...wanted), inputs };
    return aVmi(
      {
        machine: { type: this.#machine },
        devices: { ...hardware, autoattachPodInterface: false, disks, interfaces, rng: {} },
      },
      {
        volumes: disks.map(({ name }) => ({ name, emptyDisk: { capacity: '1Mi' } })),
        networks: interfaces.map(({ name }) => ({ name, pod: {} })),
      },
    );
  }
}

interface PlaceOfDevice {
  /** Unique among the places of one guest. */
  readonly key: string;
  /** The root port that leads to the place. */
  readonly port?: number;
}

function placeOf(device: Exclude<Device, { type: 'root-port' }>, chipset: Chipset): PlaceOfDevice | undefined {
  const { address = {} } = device;
  const { pci, drives, hasPorts } = layoutOf(chipset);
  if (device.type === 'agent-channel') return { key: `port of ${device.controller}` };
  if (device.type === 'tpm' || device.type === 'serial') return undefined;
  const bus = deviceBusOf(device);
  const place = (bus === 'pci' ? pci : drives[bus])?.placeOf(address);
  if (place === undefined) return undefined;
  const key = `${bus} ${place}`;
  return bus === 'pci' && hasPorts && pci.isPluggable(place) ? { key, port: place } : { key };
}
