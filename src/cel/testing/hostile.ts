/**
 * Expressions that try to block the process, and the objects that they read. Used by the tests of the evaluator and by
 * the test that watches the event loop while such policies validate requests. Each expression would run for minutes or
 * forever if it were not stopped.
 */

const range = (length: number): number[] => Array.from({ length }, (_, i) => i);

/** The values of `object.spec`. Each fits into one request. */
export const hostileSpecs = {
  numbers: () => ({ n: range(45_000), few: range(2000) }),
  doubles: () => ({ n: range(40_000).map((i) => i + 0.5), few: range(2000) }),
  strings: () => ({ n: range(40_000).map((i) => `s${i}`), few: range(2000) }),
  map: () => ({ n: Object.fromEntries(range(10_000).map((i) => [`k${i}`, i])), few: range(2000) }),
  maps: () => ({ n: range(11_000).map((i) => ({ a: i, b: { c: 1 } })), few: range(2000) }),
  deep: () => ({ n: range(200).reduce<unknown>((inner, i) => [inner, i], 1), few: range(2000) }),
  text: () => ({ t: 'ab'.repeat(300_000), few: range(2000) }),
  wide: () => ({ t: '漢😀'.repeat(80_000), few: range(2000) }),
  escapes: () => ({ t: '"\\\n'.repeat(100_000), url: `http://a/?${'a=%41&'.repeat(50_000)}`, few: range(2000) }),
  short: () => ({ t: 'ab'.repeat(500), digits: '1'.repeat(250), few: range(2000) }),
} satisfies Record<string, () => Readonly<Record<string, unknown>>>;

export interface HostileExpression {
  readonly on: keyof typeof hostileSpecs;
  /** Evaluates to a bool. */
  readonly expression: string;
}

const N = 'object.spec.n';
const FEW = 'object.spec.few';
const T = 'object.spec.t';

/** Runs an operation four million times; `a` and `b` are numbers. */
const again = (operation: string): string => `${FEW}.all(a, ${FEW}.all(b, dyn(${operation}) != null || true))`;
const doubled = (start: string, times: number): string =>
  start + Array.from({ length: times }, (_, i) => `.map(x${i}, x${i} + x${i})`).join('');
/** Uses dyn, because the type would double too and the checker rejects that. */
const shared = `[dyn(1)]${Array.from({ length: 60 }, (_, i) => `.map(x${i}, dyn([x${i}, x${i}]))`).join('')}`;
const LONG_QUANTITY = `quantity('${'9'.repeat(200)}e40')`;

export const hostileExpressions: Readonly<Record<string, HostileExpression>> = {
  'folds within folds': { on: 'numbers', expression: `${N}.all(a, ${N}.all(b, ${N}.all(c, a + b + c >= 0)))` },
  'lists of lists': { on: 'numbers', expression: `${N}.map(a, ${N}.map(b, a * b)).size() > 0` },
  'filters of filters': { on: 'numbers', expression: `${N}.filter(a, ${N}.filter(b, a > b).size() >= 0).size() > 0` },
  'maps created repeatedly': { on: 'numbers', expression: again("{'a': [a], 'b': [b]}") },
  'maps of a map': { on: 'map', expression: `${FEW}.all(a, ${N}.transformMap(k, v, v + a).size() > 0)` },
  'missing keys': { on: 'map', expression: `${FEW}.all(a, ${N}.all(k, !((k + 'x') in ${N})))` },
  'strings that double': { on: 'short', expression: `${doubled("['x']", 60)} == []` },
  'bytes that double': { on: 'short', expression: `${doubled("[b'x']", 60)} == []` },
  'lists that double': { on: 'short', expression: `${doubled('[[1]]', 60)} == []` },
  'equality of shared parts': { on: 'short', expression: `${shared} == ${shared}` },
  'equality of large lists': { on: 'maps', expression: `${FEW}.all(a, ${N} == ${N})` },
  'equality of deep values': { on: 'deep', expression: `${FEW}.all(a, ${FEW}.all(b, ${N} == ${N}))` },
  'searches in lists': { on: 'doubles', expression: `${N}.all(a, !((a + 0.25) in ${N}))` },
  'sets of sets': { on: 'strings', expression: `sets.equivalent(${N}, ${N})` },
  'lists sorted and summed': { on: 'numbers', expression: `${FEW}.all(a, ${N}.isSorted() && ${N}.sum() > ${N}.max())` },
  'a long text, compared': { on: 'text', expression: `${FEW}.all(a, ${T} + 'a' < ${T} + 'b')` },
  'a long text, searched': { on: 'text', expression: `${FEW}.all(a, !${T}.contains('ba' + ${T}))` },
  'a long text, searched from its end': { on: 'text', expression: `${FEW}.all(a, ${T}.lastIndexOf('aab') < 0)` },
  'a long text, split': { on: 'wide', expression: `${FEW}.all(a, ${T}.split('').size() > 0)` },
  'a long text, joined': { on: 'strings', expression: `${FEW}.all(a, ${N}.join('-') != '')` },
  'a long text, replaced': { on: 'wide', expression: `${FEW}.all(a, ${T}.replace('', 'xyz') != '')` },
  'a long text, escaped': { on: 'escapes', expression: `${FEW}.all(a, strings.quote(${T}) != '')` },
  'a long text, formatted': { on: 'escapes', expression: `${FEW}.all(a, '%s'.format([[${T}]]) != '')` },
  'many values, formatted': { on: 'map', expression: `${FEW}.all(a, '%s'.format([${N}]) != '')` },
  'many digits': { on: 'short', expression: again("'%.100f'.format([1e300])") },
  'a regex with many states': { on: 'text', expression: `${FEW}.all(a, ${T}.matches('(a|b)*a(a|b){12}$') || true)` },
  'the same regex on short texts': { on: 'short', expression: again(`${T}.matches('(a|b)*a(a|b){12}$')`) },
  'a regex that is large': { on: 'short', expression: again(`${T}.matches('^(?:.?){900}$')`) },
  'a regex found everywhere': { on: 'short', expression: again(`${T}.findAll('(a*)*b|ab?')`) },
  'a regex found nowhere': { on: 'wide', expression: `${FEW}.all(a, ${T}.find('(x+x+)+y') == '')` },
  'a new regex each time': { on: 'short', expression: again("'a'.matches(string(a * b) + '[a-z]{500}')") },
  'a new regex of letters each time': { on: 'short', expression: again("'a'.matches(string(a * b) + '\\\\pL{90}')") },
  'a new regex that does not compile': { on: 'short', expression: again("'a'.matches('(' + string(a * b))") },
  'time zones': { on: 'short', expression: again("timestamp(a * b).getHours('Europe/Berlin')") },
  'unknown time zones': { on: 'text', expression: again(`timestamp(a).getHours(${T})`) },
  'times parsed and formatted': { on: 'short', expression: again(`string(duration('${'1h'.repeat(60)}'))`) },
  'ports of URLs': {
    on: 'short',
    expression: `[url('http://' + ${T}.replace('ab', ':1'))].all(u, ${again('u.getPort()')})`,
  },
  'URLs, compared': {
    on: 'escapes',
    expression: `[url(object.spec.url)].all(u, [url(object.spec.url)].all(v, ${again('u == v')}))`,
  },
  'queries, parsed': { on: 'escapes', expression: `[url(object.spec.url)].all(u, ${again('u.getQuery()')})` },
  'invalid addresses': { on: 'escapes', expression: again(`isIP(${T}) || isCIDR(${T})`) },
  'addresses, formatted': { on: 'short', expression: `[ip('2001:db8::1')].all(i, ${again('string(i)')})` },
  'quantities, parsed': { on: 'short', expression: again(LONG_QUANTITY) },
  'quantities, converted to doubles': {
    on: 'short',
    expression: `[${LONG_QUANTITY}].all(q, ${again('q.asApproximateFloat()')})`,
  },
  'invalid numbers': { on: 'short', expression: again(`int(object.spec.digits)`) },
  'bytes that are not UTF-8': { on: 'short', expression: again("string(b'\\xff')") },
  'invalid names': { on: 'short', expression: again(`format.dns1123Subdomain().validate(${T})`) },
  'optional values': { on: 'numbers', expression: again('optional.of(a).optMap(x, x + b).hasValue()') },
  'faults in all iterations': {
    on: 'numbers',
    expression: `${N}.all(a, ${N}.exists(b, a / 0 == b || dyn(a) + 'x' == 'y' || {}.missing == 1))`,
  },
};

const repeated = (part: (i: number) => string, join: string, length: number): string => {
  const parts: string[] = [];
  for (let i = 0, left = length; left > 0; i += 1) {
    const next = part(i);
    left -= next.length + join.length;
    if (left > 0) parts.push(next);
  }
  return parts.join(join);
};

/** Sources that take long to compile for their length, or to report their problems. */
export const hostileSources: Readonly<Record<string, (length: number) => string>> = {
  'chained folds': (length) => repeated(() => '[].exists_one(a,true)', '||', length),
  'chained optional values': (length) => repeated(() => 'optional.none().optMap(a,a).hasValue()', '||', length),
  'types to be inferred': (length) => `[${repeated(() => '{}', ',', length - 20)}] == []`,
  'types that grow': () =>
    `[1]${Array.from({ length: 60 }, (_, i) => `.map(x${i}, {'a': [x${i}, x${i}]})`).join('')} == []`,
  'long list literals': (length) => `[${repeated(() => '1', ',', length - 20)}] == []`,
  'calls of unknown types': (length) => repeated(() => 'object+object', '==null||', length),
  'many problems': (length) => repeated(() => '1+""', '||', length),
  'unrecognized text': (length) => '$'.repeat(length),
  'many regexes': (length) => repeated((i) => `''.matches('[a-z]{900}${i}')`, '||', length),
  'regexes of all letters': (length) =>
    repeated((i) => `''.matches('(?i)[a-\\\\x{1ffff}]\\\\pL{99}${i}')`, '||', length),
};
