/** A made-up standard OVF, as desktop virtualizers write it. */

export const PLAIN_OVF = `<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
  xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
  xmlns:vmw="http://www.vmware.com/schema/ovf">
  <References>
    <File ovf:id="file1" ovf:href="mail-disk1.vmdk" ovf:size="734003200"/>
    <File ovf:id="file2" ovf:href="tools.iso" ovf:size="4194304"/>
  </References>
  <DiskSection>
    <Info>Disks</Info>
    <Disk ovf:diskId="vmdisk1" ovf:capacity="16" ovf:capacityAllocationUnits="byte * 2^30" ovf:fileRef="file1"
      ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
    <Disk ovf:diskId="vmdisk2" ovf:capacity="1048576" ovf:capacityAllocationUnits="byte"/>
  </DiskSection>
  <NetworkSection><Info>Networks</Info><Network ovf:name="VM Network"/></NetworkSection>
  <VirtualSystem ovf:id="Mail">
    <Info>A machine</Info>
    <Name>Mail</Name>
    <OperatingSystemSection ovf:id="94"><Info>Linux</Info></OperatingSystemSection>
    <VirtualHardwareSection>
      <Info>Hardware</Info>
      <System><vssd:VirtualSystemType>vmx-10</vssd:VirtualSystemType></System>
      <Item><rasd:ElementName>4 CPUs</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>4</rasd:VirtualQuantity><vmw:CoresPerSocket ovf:required="false">2</vmw:CoresPerSocket></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ElementName>memory</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>4096</rasd:VirtualQuantity></Item>
      <Item><rasd:Address>0</rasd:Address><rasd:ElementName>SCSI Controller 0</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>lsilogic</rasd:ResourceSubType><rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:Address>1</rasd:Address><rasd:ElementName>IDE 1</rasd:ElementName><rasd:InstanceID>4</rasd:InstanceID><rasd:ResourceType>5</rasd:ResourceType></Item>
      <Item><rasd:Address>0</rasd:Address><rasd:ElementName>SATA 0</rasd:ElementName><rasd:InstanceID>5</rasd:InstanceID><rasd:ResourceSubType>AHCI</rasd:ResourceSubType><rasd:ResourceType>20</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>Hard disk 1</rasd:ElementName><rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource><rasd:InstanceID>6</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>Hard disk 2</rasd:ElementName><rasd:HostResource>/disk/vmdisk2</rasd:HostResource><rasd:InstanceID>7</rasd:InstanceID><rasd:Parent>5</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>CD</rasd:ElementName><rasd:HostResource>ovf:/file/file2</rasd:HostResource><rasd:InstanceID>8</rasd:InstanceID><rasd:Parent>4</rasd:Parent><rasd:ResourceType>15</rasd:ResourceType></Item>
      <Item><rasd:ElementName>Floppy</rasd:ElementName><rasd:InstanceID>9</rasd:InstanceID><rasd:ResourceType>14</rasd:ResourceType></Item>
      <Item><rasd:Connection>VM Network</rasd:Connection><rasd:ElementName>Network adapter 1</rasd:ElementName><rasd:InstanceID>10</rasd:InstanceID><rasd:ResourceSubType>VmxNet3</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType></Item>
      <Item><rasd:Connection>VM Network</rasd:Connection><rasd:ElementName>Network adapter 2</rasd:ElementName><rasd:InstanceID>11</rasd:InstanceID><rasd:ResourceSubType>E1000e</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType></Item>
      <Item><rasd:ElementName>sound</rasd:ElementName><rasd:InstanceID>12</rasd:InstanceID><rasd:ResourceSubType>ensoniq1371</rasd:ResourceSubType><rasd:ResourceType>35</rasd:ResourceType></Item>
      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>
    </VirtualHardwareSection>
    <AnnotationSection><Info>x</Info><Annotation>y</Annotation></AnnotationSection>
    <EulaSection><Info>x</Info><License>z</License></EulaSection>
  </VirtualSystem>
</Envelope>`;
