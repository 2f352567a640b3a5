/** The parts of a timestamp, in UTC or a time zone, and of a duration. */
import type { Budget } from '#cel/limits/budget.ts';
import { floorDivide } from '#cel/evaluate/text/time-text.ts';
import type { Overload } from '#cel/library.ts';
import { zoneOffsetMillis } from '#cel/standard/time-zone.ts';
import { DURATION, INT, STRING, TIMESTAMP } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';
import type { CelDuration, CelTimestamp } from '#cel/value.ts';

/** Covers the creation of a Date. */
const PART_UNITS = 5;

type Part = (date: Date) => number;

const NANOS_PER_MILLI = 1_000_000n;
const DAY_MILLIS = 86_400_000;

function timestampPart({ nanos }: CelTimestamp, zone: string, of: Part, budget: Budget): bigint | CelFault {
  budget.charge(PART_UNITS);
  const millis = Number(floorDivide(nanos, NANOS_PER_MILLI));
  const offset = zoneOffsetMillis(zone, millis, budget);
  return offset instanceof CelFault ? offset : BigInt(of(new Date(millis + offset)));
}

/** `zoned` is the name of the overload with a time zone. */
function timestampOverloads(id: string, of: Part, zoned = `${id}_with_tz`): Overload[] {
  const args = [TIMESTAMP];
  return [
    {
      id,
      member: true,
      args,
      result: INT,
      call: ([time], budget) => timestampPart(time as CelTimestamp, 'UTC', of, budget),
    },
    {
      id: zoned,
      member: true,
      args: [...args, STRING],
      result: INT,
      call: ([time, zone], budget) => timestampPart(time as CelTimestamp, zone as string, of, budget),
    },
  ];
}

function durationOverload(id: string, nanosPerUnit: bigint): Overload {
  const call: Overload['call'] = ([value]) => (value as CelDuration).nanos / nanosPerUnit;
  return { id, member: true, args: [DURATION], result: INT, call };
}

/** Returns the day of the year, starting at 0. */
function dayOfYear(date: Date): number {
  const start = new Date(date);
  start.setUTCMonth(0, 1);
  return Math.round((date.getTime() - start.getTime()) / DAY_MILLIS);
}

export const times: Readonly<Record<string, readonly Overload[]>> = {
  getFullYear: timestampOverloads('timestamp_to_year', (date) => date.getUTCFullYear()),
  getMonth: timestampOverloads('timestamp_to_month', (date) => date.getUTCMonth()),
  getDayOfYear: timestampOverloads('timestamp_to_day_of_year', dayOfYear),
  getDayOfMonth: timestampOverloads('timestamp_to_day_of_month', (date) => date.getUTCDate() - 1),
  getDate: timestampOverloads('timestamp_to_day_of_month_1_based', (date) => date.getUTCDate()),
  getDayOfWeek: timestampOverloads('timestamp_to_day_of_week', (date) => date.getUTCDay()),
  getHours: [
    ...timestampOverloads('timestamp_to_hours', (date) => date.getUTCHours()),
    durationOverload('duration_to_hours', 3_600_000_000_000n),
  ],
  getMinutes: [
    ...timestampOverloads('timestamp_to_minutes', (date) => date.getUTCMinutes()),
    durationOverload('duration_to_minutes', 60_000_000_000n),
  ],
  getSeconds: [
    ...timestampOverloads('timestamp_to_seconds', (date) => date.getUTCSeconds(), 'timestamp_to_seconds_tz'),
    durationOverload('duration_to_seconds', 1_000_000_000n),
  ],
  getMilliseconds: [
    ...timestampOverloads('timestamp_to_milliseconds', (date) => date.getUTCMilliseconds()),
    durationOverload('duration_to_milliseconds', NANOS_PER_MILLI),
  ],
};
