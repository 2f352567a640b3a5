/** Arbitrary machine descriptions, for property tests of readers and writers. */
import fc from 'fast-check';
import { DISK_CACHES } from '#api/domain/disk.ts';
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import type { DeviceAddress, LearnedDevice, SpecParams } from '#api/devices/learned-device.ts';
import { compactRow } from '#formats/device-rows.ts';
import type { DescribedDisk, DescribedNic, DescribedState, MachineDescription } from '#formats/machine.ts';

/** Texts that XML can represent. */
const text = fc
  .string({ unit: 'binary', maxLength: 20 })
  .filter((value) => !/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u.test(value));
const key = fc.oneof(fc.constantFrom('model', 'index', 'a b', '', 'xmlns', '1', 'é', 'constructor'), text);
const label = fc.stringMatching(/^[a-z][a-z0-9-]{0,12}[a-z0-9]$/);

const { specParams } = fc.letrec<{ specParams: SpecParams }>((tie) => ({
  specParams: fc
    .array(fc.tuple(key, fc.oneof({ depthSize: 'small' }, text, tie('specParams'))), { maxLength: 3 })
    .map((entries) => Object.fromEntries(entries.filter(([name]) => name !== '__proto__'))),
}));

interface Extra {
  readonly specParams: SpecParams;
  readonly plugged: boolean;
  readonly readonly: boolean;
  /** True if its address, which follows from its position in the list, is known. */
  readonly isPlaced: boolean;
  readonly odd: string | undefined;
}

const extra: fc.Arbitrary<Extra> = fc.record({
  specParams,
  plugged: fc.boolean(),
  readonly: fc.boolean(),
  isPlaced: fc.boolean(),
  odd: fc.option(text, { nil: undefined }),
});

function addressAt(index: number, { isPlaced, odd }: Extra): DeviceAddress {
  if (!isPlaced) return {};
  const hex = (value: number) => `0x${value.toString(16).padStart(2, '0')}`;
  const bus = hex(index >> 5);
  const address = { type: 'pci', domain: '0x0000', bus, slot: hex(index & 31), function: '0x0' };
  return odd === undefined ? address : { ...address, multifunction: odd };
}

const media = fc.constantFrom(
  { media: 'disk', bus: 'virtio' } as const,
  { media: 'disk', bus: 'scsi' } as const,
  { media: 'cdrom', bus: 'sata' } as const,
  { media: 'cdrom', bus: 'ide' } as const,
  { media: 'floppy', bus: 'fdc' } as const,
  { media: 'lun', bus: 'scsi', lun: { guid: '3600140580e1c' } } as const,
  { media: 'lun', bus: 'scsi', lun: { uuid: 'a-b-c' } } as const,
  { media: 'disk', bus: 'virtio', lun: { guid: '3600140580e1d' } } as const,
);

const option = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const secretName = option(fc.stringMatching(/^[a-z][a-z0-9-]{0,10}[a-z0-9]$/));
const cloudInitPart = fc
  .record({ data: option(fc.uint8Array({ maxLength: 12 })), secret: secretName })
  .map(({ data, secret }) =>
    withoutUndefined({
      secret,
      base64: data === undefined && secret !== undefined ? undefined : Buffer.from(data ?? []).toString('base64'),
    }),
  );
const cloudInit = fc
  .record({ userData: option(cloudInitPart), networkData: option(cloudInitPart) })
  .map((parts) => withoutUndefined(parts));
const labels = option(
  fc.dictionary(fc.stringMatching(/^(?:a\.example\/)?[a-z][a-z0-9_.]{0,5}[a-z]$/), fc.stringMatching(/^[A-Z]{0,3}$/), {
    minKeys: 1,
    maxKeys: 3,
    noNullPrototype: true,
  }),
);

const disk = fc.record({
  cloudInit: option(cloudInit),
  kind: media,
  name: label,
  hasFile: fc.boolean(),
  sizeBytes: option(fc.maxSafeNat()),
  format: fc.constantFrom('raw' as const, 'qcow2' as const),
  boots: fc.boolean(),
  optional: fc.boolean(),
  serial: option(fc.stringMatching(/^[A-Za-z0-9_.+-]{1,36}$/)),
  cache: option(fc.constantFrom(...DISK_CACHES)),
  hotpluggable: option(fc.boolean()),
  extra,
});

const nic = fc.record({
  name: label,
  model: fc.constantFrom(...INTERFACE_MODELS),
  hasMac: fc.boolean(),
  network: option(text),
  boots: fc.boolean(),
  extra,
});

const other = fc.record({
  kind: fc.constantFrom(
    ['controller', 'virtio-scsi'],
    ['controller', 'pcie-root-port'],
    ['controller', 'usb'],
    ['tpm', 'crb'],
    ['balloon', 'memballoon'],
    ['sound', 'ich9'],
    ['video', 'vga'],
    ['graphics', 'vnc'],
    ['console', 'serial'],
    ['odd', 'thing'] as [string, string],
  ),
  id: label,
  name: option(text),
  managed: option(fc.boolean()),
  extra,
});

const base = fc.record({
  name: fc.stringMatching(/^[a-z][a-z0-9.]{0,10}[a-z0-9]$/).filter((name) => !name.includes('..')),
  uuid: option(fc.uuid()),
  serial: option(text.filter((value) => value !== '')),
  machineType: option(fc.stringMatching(/^[a-z0-9.-]{1,20}$/)),
  chipset: option(fc.constantFrom('q35' as const, 'i440fx' as const)),
  cpu: fc.record(
    {
      sockets: fc.integer({ min: 1, max: 8 }),
      cores: fc.integer({ min: 1, max: 8 }),
      threads: fc.integer({ min: 1, max: 2 }),
      model: fc.stringMatching(/^[A-Za-z0-9-]{1,20}$/),
    },
    { requiredKeys: ['sockets', 'cores', 'threads'] },
  ),
  memoryMib: fc.integer({ min: 1, max: 1_000_000 }),
  firmware: fc.constantFrom('bios' as const, 'efi' as const, 'efi-secure' as const),
  hostname: option(label),
  labels,
  templateLabels: labels,
  notes: fc.array(text, { maxLength: 3 }),
  state: option(
    fc.record({
      tpm: fc.boolean(),
      efi: fc.boolean(),
      file: option(fc.constant('state.bin')),
      sizeBytes: fc.integer({ min: 0, max: 2 ** 24 }),
    }),
  ),
});

const unique = <T extends { name: string }>(arbitrary: fc.Arbitrary<T>) =>
  fc.uniqueArray(arbitrary, { selector: ({ name }) => name, maxLength: 5 });

export const arbitraryMachine: fc.Arbitrary<MachineDescription> = fc
  .record({
    base,
    disks: unique(disk),
    nics: unique(nic),
    others: fc.uniqueArray(other, { selector: ({ id }) => id, maxLength: 6 }),
  })
  .map((parts) => machineFrom(parts.base, parts.disks, parts.nics, parts.others));

type Of<A> = A extends fc.Arbitrary<infer T> ? T : never;

function machineFrom(
  head: Of<typeof base>,
  disks: Of<typeof disk>[],
  nics: Of<typeof nic>[],
  others: Of<typeof other>[],
): MachineDescription {
  let [place, boots] = [0, 0];
  const rows: LearnedDevice[] = [];
  const described = disks.map((made): DescribedDisk => {
    const { kind, name, extra: more } = made;
    const bootOrder = made.boots ? ++boots : undefined;
    const readonly = more.readonly || kind.media === 'cdrom';
    const id = `disk-${name}`;
    const specifics = { specParams: more.specParams, address: addressAt(place++, more) };
    rows.push(
      compactRow({
        id,
        type: 'disk',
        device: kind.media,
        name,
        bootOrder,
        managed: true,
        plugged: more.plugged,
        readonly,
        ...specifics,
      }),
    );
    const isLun = 'lun' in kind;
    return withoutUndefined({
      ...kind,
      lun: uniqueLun('lun' in kind ? kind.lun : undefined, name),
      id,
      name,
      file: made.hasFile && !isLun ? `images/${name}.img` : undefined,
      sizeBytes: made.sizeBytes,
      format: made.format,
      bootOrder,
      readonly,
      plugged: more.plugged,
      optional: made.optional,
      serial: made.serial,
      cache: made.cache,
      hotpluggable: made.hotpluggable,
      cloudInit: made.hasFile || isLun ? undefined : made.cloudInit,
    });
  });
  const plugs = nics.map((made, i): DescribedNic => {
    const { name, model, network, extra: more } = made;
    const bootOrder = made.boots ? ++boots : undefined;
    const id = `nic-${name}`;
    const specifics = { specParams: more.specParams, address: addressAt(place++, more), readonly: more.readonly };
    rows.push(
      compactRow({
        id,
        type: 'interface',
        device: model,
        name,
        bootOrder,
        managed: true,
        plugged: more.plugged,
        ...specifics,
      }),
    );
    const mac = made.hasMac ? `02:00:00:00:00:0${i}` : undefined;
    return withoutUndefined({ id, name, model, mac, network, bootOrder, plugged: more.plugged });
  });
  for (const { kind, id, name, managed, extra: more } of others) {
    const [type, device] = kind;
    const specifics = { specParams: more.specParams, address: addressAt(place++, more), readonly: more.readonly };
    rows.push(compactRow({ id: `x-${id}`, type, device, name, managed, plugged: more.plugged, ...specifics }));
  }
  const tpm = rows.some(({ type }) => type === 'tpm');
  return withoutUndefined({
    ...head,
    cpu: { ...head.cpu },
    disks: described,
    nics: plugs,
    rows,
    tpm,
    state: head.state && stateFrom(head.state, { tpm, firmware: head.firmware }),
    source: { format: 'vm' as const },
  });
}

/** Restricts the state to devices that the machine has. */
function stateFrom(
  { tpm, efi, file, sizeBytes }: NonNullable<Of<typeof base>['state']>,
  machine: Pick<MachineDescription, 'tpm' | 'firmware'>,
): DescribedState {
  const kept = { tpm: tpm && machine.tpm, efi: efi && machine.firmware !== 'bios' };
  return file === undefined ? kept : { ...kept, file, sizeBytes };
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, child]) => child !== undefined)) as T;
}

/** Makes the ids of LUNs unique. */
function uniqueLun(lun: DescribedDisk['lun'], name: string): DescribedDisk['lun'] {
  if (lun === undefined) return undefined;
  return lun.uuid === undefined ? { guid: `${lun.guid}-${name}` } : { uuid: `${lun.uuid}-${name}` };
}
