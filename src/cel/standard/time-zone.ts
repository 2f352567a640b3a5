/** Offsets of time zones. A zone is a name of the IANA database or an offset like `-08:00`. */
import type { Budget } from '#cel/limits/budget.ts';
import { CelFault } from '#cel/value.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';

const MAX_CACHED = 64;
const MAX_ZONE = 64;
/** Measured, for creating a formatter and for using it. */
const ZONE_UNITS = 5000;
const LOOKUP_UNITS = 300;

const formatters = new BoundedCache<string, Intl.DateTimeFormat | CelFault>({
  maxEntries: MAX_CACHED,
  maxWeight: MAX_CACHED,
});

/** Returns the offset from UTC at this time. */
export function zoneOffsetMillis(zone: string, utcMillis: number, budget: Budget): number | CelFault {
  if (zone.length > MAX_ZONE) return unknownZone(zone);
  const colon = zone.indexOf(':');
  if (colon !== -1) return fixedOffset(zone, colon);
  if (zone === '' || zone === 'UTC') return 0;
  const formatter = formatterOf(zone, budget);
  if (formatter instanceof CelFault) return formatter;
  budget.charge(LOOKUP_UNITS);
  return wallClock(formatter, utcMillis) - Math.floor(utcMillis / 1000) * 1000;
}

function fixedOffset(zone: string, colon: number): number | CelFault {
  const hours = zone.slice(0, colon);
  const minutes = zone.slice(colon + 1);
  if (!/^[+-]?\d{1,4}$/.test(hours))
    return new CelFault(`strconv.Atoi: parsing "${hours.slice(0, 64)}": invalid syntax`);
  if (!/^\d{1,4}$/.test(minutes))
    return new CelFault(`strconv.Atoi: parsing "${minutes.slice(0, 64)}": invalid syntax`);
  const sign = zone.startsWith('-') ? -1 : 1;
  return (Number(hours) * 60 + sign * Number(minutes)) * 60_000;
}

function unknownZone(zone: string): CelFault {
  return new CelFault(`unknown time zone ${zone.slice(0, 64)}`);
}

function formatterOf(zone: string, budget: Budget): Intl.DateTimeFormat | CelFault {
  const known = formatters.get(zone);
  if (known !== undefined) return known;
  budget.charge(ZONE_UNITS);
  const formatter = makeFormatter(zone);
  formatters.set(zone, formatter, 1);
  return formatter;
}

function makeFormatter(zone: string): Intl.DateTimeFormat | CelFault {
  // JavaScript accepts an offset without a colon as a zone, Go does not.
  if (/^[+-]/.test(zone)) return unknownZone(zone);
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      hourCycle: 'h23',
    });
  } catch {
    return unknownZone(zone);
  }
}

/** Returns the local time in the zone as if it were UTC. */
function wallClock(formatter: Intl.DateTimeFormat, utcMillis: number): number {
  const parts = new Map(formatter.formatToParts(utcMillis).map(({ type, value }) => [type, value]));
  const number = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type));
  const year = parts.get('era') === 'BC' ? 1 - number('year') : number('year');
  const date = new Date(0);
  date.setUTCFullYear(year, number('month') - 1, number('day'));
  return date.setUTCHours(number('hour'), number('minute'), number('second'), 0);
}
