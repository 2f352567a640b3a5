/** Made-up OVFs in the form of several versions of oVirt: valid by default, with replaceable parts. */

export const VM_ID = '4f1c0f4e-0a53-4f5e-9a53-1d7c5a6ad101';
export const DISK_1 = '0c1b6a1e-52a5-4a9e-8d0e-3e6f0a0d2201';
export const IMAGE_1 = '7b5d4b0c-6a0a-4b8c-a5f1-9a5b1c7f3301';
export const DISK_2 = '0c1b6a1e-52a5-4a9e-8d0e-3e6f0a0d2202';
export const IMAGE_2 = '7b5d4b0c-6a0a-4b8c-a5f1-9a5b1c7f3302';
export const NIC_1 = '5a0e1d2c-1111-4a4a-8b8b-0a0b0c0d4401';
export const NIC_2 = '5a0e1d2c-1111-4a4a-8b8b-0a0b0c0d4402';

export interface OvfParts {
  readonly version?: string;
  readonly files?: string;
  readonly disks?: string;
  readonly settings?: string;
  readonly items?: string;
  /** Additional elements between the sections. */
  readonly extra?: string;
}

const NAMESPACES = [
  'xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1/"',
  'xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"',
  'xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"',
  'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"',
].join(' ');

export function item(type: number, id: string, more: string, caption = `item ${id}`): string {
  return `<Item><rasd:Caption>${caption}</rasd:Caption><rasd:InstanceId>${id}</rasd:InstanceId><rasd:ResourceType>${type}</rasd:ResourceType>${more}</Item>`;
}

/** Returns the elements that describe a device since oVirt 3.1. */
export function block(type: string, device: string, address = '', more = ''): string {
  return `<Type>${type}</Type><Device>${device}</Device><rasd:Address>${address}</rasd:Address>${more}`;
}

export const cpuAndMemory =
  item(
    3,
    '1',
    '<rasd:num_of_sockets>2</rasd:num_of_sockets><rasd:cpu_per_socket>2</rasd:cpu_per_socket><rasd:VirtualQuantity>4</rasd:VirtualQuantity>',
  ) +
  item(
    4,
    '2',
    '<rasd:AllocationUnits>MegaBytes</rasd:AllocationUnits><rasd:VirtualQuantity>2048</rasd:VirtualQuantity>',
  );

export const file = (disk: string, image: string, size = 1_073_741_824) =>
  `<File ovf:href="${disk}/${image}" ovf:id="${image}" ovf:size="${size}" ovf:description="Active VM"/>`;

export const disk = (
  diskId: string,
  image: string,
  alias: string,
  more = 'ovf:disk-interface="VirtIO" ovf:boot="false"',
) =>
  `<Disk ovf:diskId="${image}" ovf:size="10" ovf:parentRef="" ovf:fileRef="${diskId}/${image}" ovf:volume-format="RAW" ovf:volume-type="Sparse" ovf:disk-alias="${alias}" ${more}/>`;

export const diskItem = (diskId: string, image: string, more = '') =>
  item(
    17,
    image,
    `<rasd:HostResource>${diskId}/${image}</rasd:HostResource><rasd:Parent>00000000-0000-0000-0000-000000000000</rasd:Parent>${more}`,
  );

export const nicItem = (id: string, name: string, mac: string, more = '', model = 3) =>
  item(
    10,
    id,
    `<rasd:ResourceSubType>${model}</rasd:ResourceSubType><rasd:Connection>ovirtmgmt</rasd:Connection><rasd:Linked>true</rasd:Linked><rasd:Name>${name}</rasd:Name><rasd:MACAddress>${mac}</rasd:MACAddress>${more}`,
    `Ethernet adapter on ovirtmgmt`,
  );

export const plugged = (more = '') =>
  `<BootOrder>0</BootOrder><IsPlugged>true</IsPlugged><IsReadOnly>false</IsReadOnly><Alias></Alias>${more}`;

/** Returns an OVF with two disks, of which the second boots, two interfaces and a CD. */
export function ovirtOvf(parts: OvfParts = {}): string {
  const { version = '4.1.0.0', settings = '', extra = '' } = parts;
  const files = parts.files ?? file(DISK_1, IMAGE_1) + file(DISK_2, IMAGE_2);
  const disks =
    parts.disks ??
    disk(DISK_1, IMAGE_1, 'web_Disk2') +
      disk(DISK_2, IMAGE_2, 'web_Disk1', 'ovf:disk-interface="VirtIO_SCSI" ovf:boot="true"');
  const items = parts.items ?? fullItems;
  return `<?xml version="1.0" encoding="UTF-8"?>
<ovf:Envelope ${NAMESPACES} ovf:version="${version}">
<References>${files}<Nic ovf:id="${NIC_1}"/><Nic ovf:id="${NIC_2}"/></References>
<Section xsi:type="ovf:NetworkSection_Type"><Info>List of networks</Info><Network ovf:name="ovirtmgmt"/></Section>
<Section xsi:type="ovf:DiskSection_Type"><Info>List of Virtual Disks</Info>${disks}</Section>${extra}
<Content ovf:id="out" xsi:type="ovf:VirtualSystem_Type">
<Name>Web Server 1</Name><Description>the web</Description><default_boot_sequence>1</default_boot_sequence>${settings}
<Section ovf:id="${VM_ID}" ovf:required="false" xsi:type="ovf:OperatingSystemSection_Type"><Info>Guest OS</Info><Description>other</Description></Section>
<Section xsi:type="ovf:VirtualHardwareSection_Type"><Info>4 CPU, 2048 Memory</Info>
<System><vssd:VirtualSystemType>ENGINE ${version}</vssd:VirtualSystemType></System>${cpuAndMemory}${items}</Section>
</Content>
</ovf:Envelope>`;
}

export const pci = (slot: string, order: 'old' | 'new' = 'new') =>
  order === 'new'
    ? `{type=pci, slot=${slot}, bus=0x00, domain=0x0000, function=0x0}`
    : `{slot=${slot}, bus=0x00, domain=0x0000, type=pci, function=0x0}`;

const fullItems = [
  diskItem(DISK_1, IMAGE_1, block('disk', 'disk', pci('0x07', 'old'), plugged())),
  diskItem(DISK_2, IMAGE_2, block('disk', 'disk', '{type=drive, bus=0, controller=0, target=0, unit=0}', plugged())),
  nicItem(NIC_1, 'nic1', '00:1A:4A:16:01:51', block('interface', 'bridge', pci('0x03'), plugged())),
  nicItem(
    NIC_2,
    'nic2',
    '00:1a:4a:16:01:52',
    block('interface', 'bridge', pci('0x09'), '<IsPlugged>false</IsPlugged>'),
    2,
  ),
  item(
    20,
    'e1',
    `<rasd:VirtualQuantity>1</rasd:VirtualQuantity>${block('video', 'qxl', pci('0x02'), plugged('<SpecParams><vram>32768</vram><heads>1</heads></SpecParams>'))}`,
  ),
  item(26, 'e2', block('graphics', 'spice')),
  item(
    15,
    'e3',
    block('disk', 'cdrom', '{type=drive, bus=1, controller=0, target=0, unit=0}', '<IsReadOnly>true</IsReadOnly>'),
  ),
  item(
    0,
    'e4',
    block(
      'controller',
      'virtio-scsi',
      pci('0x05'),
      plugged('<SpecParams><index>0</index><model>virtio-scsi</model></SpecParams>'),
    ),
  ),
  item(0, 'e5', block('balloon', 'memballoon', pci('0x08'), plugged('<SpecParams><model>virtio</model></SpecParams>'))),
  item(0, 'e6', block('channel', 'unix', '{type=virtio-serial, bus=0, controller=0, port=1}')),
  item(
    0,
    'e7',
    block(
      'controller',
      'ide',
      '{type=pci, slot=0x01, bus=0x00, domain=0x0000, function=0x1}',
      plugged('<SpecParams><a><b>1</b><c>2</c></a></SpecParams>'),
    ),
  ),
].join('\n');
