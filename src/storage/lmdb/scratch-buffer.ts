/**
 * A buffer that is lent over and over: what it gives is the taker's until the next call. It grows with what is asked
 * for.
 */
export function createScratchBuffer(): (length: number) => Buffer<ArrayBuffer> {
  let room = Buffer.allocUnsafeSlow(64 * 1024)
  return (length) => {
    if (length > room.length) room = Buffer.allocUnsafeSlow(length)
    return room.subarray(0, length)
  }
}
