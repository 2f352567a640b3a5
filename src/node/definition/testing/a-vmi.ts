/** A minimal instance, and a node that can run it. */
import type { DomainSpec } from '#api/domain/domain.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { Stored } from '#kube/meta.ts';
import { NOTHING_KNOWN } from '#api/devices/known-devices.ts';
import type { DefineInput } from '#node/definition/define-domain.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';

export const VMI_UID = '7e1c4a52-6f0b-4f52-9a57-0d6a5d3f2c11';
export const VM_UID = '0b9fbb6c-2f43-4a53-8d0f-8d1f0c1f5a77';

export function aVmi(
  domain: DomainSpec = {},
  spec: Omit<VmiSpec, 'domain'> = {},
  owner?: string,
): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: 'db',
      namespace: 'default',
      uid: VMI_UID,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(owner !== undefined && {
        ownerReferences: [
          { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: owner, controller: true },
        ],
      }),
    },
    spec: { ...spec, domain: { memory: { guest: '128Mi' }, ...domain } },
  };
}

export function someCapabilities(accelerator: Capabilities['accelerator'] = 'kvm'): Capabilities {
  return {
    accelerator,
    version: 'QEMU 7.2.22',
    machines: [
      { name: 'pc-i440fx-7.2', alias: 'pc', deprecated: false, maxCpus: 255 },
      { name: 'pc-q35-6.2', deprecated: false, maxCpus: 288 },
      { name: 'pc-q35-7.2', alias: 'q35', deprecated: false, maxCpus: 288 },
    ],
  };
}

/** Returns a medium for each volume: a raw file of the same name. */
export function someMedia(names: readonly string[], overrides: Partial<Medium> = {}): Map<string, Medium> {
  return new Map(
    names.map((name) => [
      name,
      { source: { path: `/data/${name}.img`, format: 'raw' }, readonly: false, ...overrides },
    ]),
  );
}

export function anInput(vmi: Stored<VirtualMachineInstance>, overrides: Partial<DefineInput> = {}): DefineInput {
  const names = (vmi.spec.volumes ?? []).map(({ name }) => name);
  return {
    vmi,
    known: NOTHING_KNOWN,
    capabilities: someCapabilities(),
    volumes: someMedia(names),
    kernel: undefined,
    ...overrides,
  };
}
