/** What Windows guests know of Hyper-V. Each is on where it is named and not set to false. */
import { bool, int32, obj, str, type Infer } from '#kube/schema-dsl.ts';

const enabled = bool({ description: 'On unless set to false.' });
const flag = (description: string) => obj({ enabled }, { description });

export const hyperv = obj(
  {
    relaxed: flag('No watchdog timeouts where the guest is slow.'),
    vapic: flag('Interrupts without leaving the guest.'),
    spinlocks: obj(
      {
        enabled,
        spinlocks: int32({ minimum: 4096, description: 'Tries before the hypervisor is told; 4096 unless set.' }),
      },
      { description: 'Spin locks that know of the hypervisor.' },
    ),
    vpindex: flag('Processors know their number.'),
    runtime: flag('Processors know how long they ran.'),
    synic: flag('Synthetic interrupts; brings vpindex along.'),
    synictimer: obj(
      { enabled, direct: flag('Timers tell by an interrupt of their own.') },
      { description: 'Synthetic timers; brings synic and the reference time along.' },
    ),
    reset: flag('The guest can be reset by a register.'),
    vendorid: obj(
      { enabled, vendorid: str({ maxLength: 12, pattern: '^[A-Za-z0-9 ._-]*$', description: 'Up to 12 characters.' }) },
      { description: 'Under which name the hypervisor is seen.' },
    ),
    frequencies: flag('Frequencies of clocks by registers.'),
    reenlightenment: flag('The guest is told when the frequency of its clock changes.'),
    tlbflush: flag('Remote flushes of the TLB; brings vpindex along.'),
    ipi: flag('Interrupts between processors; brings vpindex along.'),
    evmcs: flag('Nested virtualization that is told of; brings vapic along.'),
  },
  { description: 'Enlightenments for Windows guests; they need KVM.' },
);

export type Hyperv = Infer<typeof hyperv>;
export type HypervFeature = keyof Hyperv;
