/** Starts the console in the document. */

import { render } from 'preact'
import { followSession } from './events.ts'
import { findSession } from './interface.ts'
import { Shell } from './shell.tsx'
import 'uplot/dist/uPlot.min.css'
import './style.css'

followSession()
void findSession().then(() => render(<Shell />, document.body))
