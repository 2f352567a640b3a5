/** Waits for warming up and settling; never use it to wait until something is ready. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
