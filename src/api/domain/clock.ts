/** The clock of a guest, and the timers that it has. */
import { bool, int32, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const present = bool({ description: 'On unless set to false.' });

export const clock = obj({
  utc: obj(
    { offsetSeconds: int32({ description: 'How much later than UTC the clock is.' }) },
    { description: 'The clock runs on UTC; so it is unless timezone is set.' },
  ),
  timezone: str({ maxLength: 64, description: 'The clock runs on the time of this zone: America/New_York.' }),
  timer: obj({
    hpet: obj({ present, tickPolicy: oneOf(['delay', 'catchup', 'merge', 'discard']) }),
    pit: obj({ present, tickPolicy: oneOf(['delay', 'catchup', 'discard']) }),
    rtc: obj({ present, tickPolicy: oneOf(['delay', 'catchup']), track: oneOf(['guest', 'wall']) }),
    kvm: obj({ present }, { description: 'The clock of KVM.' }),
    hyperv: obj({ present }, { description: 'The reference time of Hyper-V, for Windows.' }),
  }),
});

export type Clock = Infer<typeof clock>;
