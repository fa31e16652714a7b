/** How many requests may be under way through a connection. */

import { expect, test } from 'bun:test'
import { createCallSlots } from '../../../src/features/gateway/call-slots.ts'
import { concurrentCallsMax } from '../../../src/limits.ts'

const share = concurrentCallsMax / 4
const callOf = (keyId: string, connectionId = 'one') => ({
  ref: { namespace: 'acme', connectionId },
  holder: { keyId, family: keyId },
  message: { id: 1 } as never,
})

test('a slot that was given back is there again, once, while others are under way', () => {
  const slots = createCallSlots()
  const [first, ...rest] = Array.from({ length: share }, () => slots.acquire(callOf('ada')))
  if (first === undefined) throw new Error('there are slots')
  const full = () => expect(() => slots.acquire(callOf('ada'))).toThrow('too many concurrent requests')
  full()
  first()
  first()
  const again = slots.acquire(callOf('ada'))
  full()
  for (const release of [...rest, again]) release()
  for (let i = 0; i < share; i += 1) slots.acquire(callOf('ada'))
  full()
})

test('each connection has its own', () => {
  const slots = createCallSlots()
  for (let i = 0; i < share; i += 1) slots.acquire(callOf('ada'))
  slots.acquire(callOf('ada', 'two'))
  slots.acquire(callOf('eve'))
})

test('a connection is counted until its last request is over, and not until one of them is', () => {
  const slots = createCallSlots()
  const [first, second] = [slots.acquire(callOf('ada')), slots.acquire(callOf('ada'))]
  first()
  for (let i = 1; i < share; i += 1) slots.acquire(callOf('ada'))
  expect(() => slots.acquire(callOf('ada'))).toThrow('too many concurrent requests')
  second()
  slots.acquire(callOf('ada'))
})
