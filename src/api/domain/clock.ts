/** Schema of the clock and the timers of a guest. */
import { bool, int32, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const present = bool({ description: 'Defaults to true.' });

export const clock = obj({
  utc: obj(
    { offsetSeconds: int32({ description: 'Offset of the clock from UTC in seconds.' }) },
    { description: 'The clock is in UTC. This is the default unless timezone is set.' },
  ),
  timezone: str({ maxLength: 64, description: 'The clock is in this time zone, for example America/New_York.' }),
  timer: obj({
    hpet: obj({ present, tickPolicy: oneOf(['delay', 'catchup', 'merge', 'discard']) }),
    pit: obj({ present, tickPolicy: oneOf(['delay', 'catchup', 'discard']) }),
    rtc: obj({ present, tickPolicy: oneOf(['delay', 'catchup']), track: oneOf(['guest', 'wall']) }),
    kvm: obj({ present }, { description: 'The paravirtual clock of KVM.' }),
    hyperv: obj({ present }, { description: 'The reference time counter of Hyper-V, for Windows guests.' }),
  }),
});

export type GuestClock = Infer<typeof clock>;
