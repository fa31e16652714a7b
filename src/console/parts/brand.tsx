/** The mark of postern, and its name. */

/** A small door in a wall, as on the other pages (`http/look.ts`). */
export function Brand() {
  return (
    <>
      <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
        <path
          fill="none"
          stroke="currentColor"
          stroke-width="2"
          d="M2 19V4h16v15M7 19v-6a3 3 0 0 1 6 0v6M2 9h5M13 9h5"
        />
      </svg>
      postern
    </>
  )
}
