/** Schema of the Hyper-V enlightenments for Windows guests. Each is on if it is present and not set to false. */
import { bool, int32, obj, str, type Infer } from '#kube/schema-dsl.ts';

const enabled = bool({ description: 'Defaults to true.' });
const flag = (description: string) => obj({ enabled }, { description });

export const hyperv = obj(
  {
    relaxed: flag('Relaxes the watchdog timeouts of the guest.'),
    vapic: flag('Virtual APIC, for interrupts without exits to the hypervisor.'),
    spinlocks: obj(
      {
        enabled,
        spinlocks: int32({
          minimum: 4096,
          description: 'Number of attempts before the hypervisor is notified. Defaults to 4096.',
        }),
      },
      { description: 'Paravirtual spinlocks.' },
    ),
    vpindex: flag('Gives vCPUs their virtual processor index.'),
    runtime: flag('Gives vCPUs their run time.'),
    synic: flag('Synthetic interrupt controller. Includes vpindex.'),
    synictimer: obj(
      { enabled, direct: flag('Timers use direct interrupts.') },
      { description: 'Synthetic timers. Includes synic and the reference time counter.' },
    ),
    reset: flag('Lets the guest reset itself by a register.'),
    vendorid: obj(
      { enabled, vendorid: str({ maxLength: 12, pattern: '^[A-Za-z0-9 ._-]*$', description: 'Up to 12 characters.' }) },
      { description: 'The vendor id of the hypervisor that the guest sees.' },
    ),
    frequencies: flag('Provides clock frequencies in registers.'),
    reenlightenment: flag('Notifies the guest when its TSC frequency changes.'),
    tlbflush: flag('Paravirtual TLB flushes. Includes vpindex.'),
    ipi: flag('Paravirtual interprocessor interrupts. Includes vpindex.'),
    evmcs: flag('Enlightened VMCS, for nested virtualization. Includes vapic.'),
  },
  { description: 'Hyper-V enlightenments for Windows guests. Require KVM.' },
);

export type Hyperv = Infer<typeof hyperv>;
export type HypervFeature = keyof Hyperv;
