import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openImport } from '#cli/transfer/import-source.ts';

const OVF = `<?xml version="1.0"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData">
  <References><File ovf:id="f" ovf:href="disk.img"/></References>
  <DiskSection><Info>Disks</Info><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1048576"/></DiskSection>
  <VirtualSystem ovf:id="db"><Info>A machine</Info>
    <VirtualHardwareSection><Info>Hardware</Info>
      <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
      <Item><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:VirtualQuantity>128</rasd:VirtualQuantity></Item>
      <Item><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceType>17</rasd:ResourceType><rasd:HostResource>ovf:/disk/d</rasd:HostResource></Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>`;

test('an OVF cannot name a file of the user by a link beside it', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'ovf-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'db.ovf'), OVF);
  symlinkSync('/etc/passwd', join(dir, 'disk.img'));
  await assert.rejects(openImport(join(dir, 'db.ovf'), new Set()), /disk\.img: it is a symbolic link to \/etc\/passwd/);
  rmSync(join(dir, 'disk.img'));
  await assert.rejects(openImport(join(dir, 'db.ovf'), new Set()), /it is not in the directory of the OVF/);
  writeFileSync(join(dir, 'disk.img'), Buffer.alloc(1024 * 1024));
  const source = await openImport(join(dir, 'db.ovf'), new Set());
  let bytes = 0;
  for await (const { content } of source.files(new Set(['disk.img']))) {
    for await (const chunk of content) bytes += chunk.length;
  }
  assert.equal(bytes, 1024 * 1024);
});
