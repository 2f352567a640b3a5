/** Finds amounts that grow with time, in samples that were taken at regular intervals. Pure. */

/** Amounts by what they count. */
export type Sample = Readonly<Record<string, number>>;

interface GrowthOptions {
  /** The factor from one period to the next that is not yet growth, by amount; 1 if it is not listed. */
  readonly tolerance: Readonly<Record<string, number>>;
  /** The amounts that vary at random: their medians are compared, and not their maxima. */
  readonly noisy: ReadonlySet<string>;
}

/** Compares the second half of the samples with the first: returns a line for each amount that grew. */
export function findGrowth(samples: readonly Sample[], { tolerance, noisy }: GrowthOptions): string[] {
  const middle = samples.length >> 1;
  return Object.keys(samples.at(-1) ?? {}).flatMap((name) => {
    const amounts = (part: readonly Sample[]) => part.map((sample) => sample[name] ?? 0).sort((a, b) => a - b);
    const pick = (sorted: readonly number[]) => (noisy.has(name) ? sorted[sorted.length >> 1] : sorted.at(-1)) ?? 0;
    const [before, after] = [pick(amounts(samples.slice(0, middle))), pick(amounts(samples.slice(middle)))];
    return after > before * (tolerance[name] ?? 1) ? [`${name}: ${before} -> ${after}`] : [];
  });
}
