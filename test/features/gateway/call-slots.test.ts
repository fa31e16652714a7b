/** How many requests may be under way through a connection. */

import { expect, test } from 'bun:test'
import { createCallSlots } from '../../../src/features/gateway/call-slots.ts'
import { concurrentCallsMax } from '../../../src/limits.ts'

const share = concurrentCallsMax / 4
const callOf = (keyId: string, connectionId = 'one') => ({
  connection: { namespace: 'acme', connectionId } as never,
  holder: { keyId, family: keyId },
  message: { id: 1 } as never,
})

test('a slot that was given back is there again while others are under way', () => {
  const takeSlot = createCallSlots()
  const [first, ...rest] = Array.from({ length: share }, () => takeSlot(callOf('ada')))
  if (first === undefined) throw new Error('there are slots')
  const full = () => expect(() => takeSlot(callOf('ada'))).toThrow('too many concurrent requests')
  full()
  first()
  const again = takeSlot(callOf('ada'))
  full()
  for (const release of [...rest, again]) release()
  for (let i = 0; i < share; i += 1) takeSlot(callOf('ada'))
  full()
})

test('each connection has its own', () => {
  const takeSlot = createCallSlots()
  for (let i = 0; i < share; i += 1) takeSlot(callOf('ada'))
  takeSlot(callOf('ada', 'two'))
  takeSlot(callOf('eve'))
})

test('a connection is counted until its last request is over, and not until one of them is', () => {
  const takeSlot = createCallSlots()
  const [first, second] = [takeSlot(callOf('ada')), takeSlot(callOf('ada'))]
  first()
  for (let i = 1; i < share; i += 1) takeSlot(callOf('ada'))
  expect(() => takeSlot(callOf('ada'))).toThrow('too many concurrent requests')
  second()
  takeSlot(callOf('ada'))
})
