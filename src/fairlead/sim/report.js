(function(){
function span(s){return s<120?Math.round(s)+' s':s<7200?Math.round(s/60)+' min':s<172800?(s/3600).toFixed(1)+' h'
:(s/86400).toFixed(1)+' d'}
function value(v,kind){return kind==='part'?(v*100).toFixed(1)+' %':v.toFixed(v<10?1:0)}
document.querySelectorAll('svg[data-hover]').forEach(function(svg){
var data=JSON.parse(svg.dataset.hover),box=svg.closest('section'),tip=null,cross=null;
function hide(){if(tip){tip.remove();cross.remove();tip=cross=null}}
svg.addEventListener('pointerleave',hide);
svg.addEventListener('pointermove',function(event){
var area=svg.getBoundingClientRect(),view=svg.viewBox.baseVal,x=(event.clientX-area.left)*view.width/area.width;
var at=(x-data.left)/data.width*data.right;
if(at<0||at>data.right){hide();return}
if(!tip){tip=document.createElement('div');tip.className='tip';box.appendChild(tip);
cross=document.createElementNS(svg.namespaceURI,'line');cross.setAttribute('class','cross');
svg.appendChild(cross)}
cross.setAttribute('x1',x);cross.setAttribute('x2',x);cross.setAttribute('y1',8);
cross.setAttribute('y2',view.height-34);
tip.textContent='';var head=document.createElement('div');head.textContent='after '+span(at);tip.appendChild(head);
data.lines.forEach(function(line){var low=0,high=line.x.length-1;
while(low<high){var mid=(low+high)>>1;if(line.x[mid]<at)low=mid+1;else high=mid}
if(low>0&&at-line.x[low-1]<line.x[low]-at)low--;
var row=document.createElement('div'),dot=document.createElement('i');dot.style.background=line.c;
row.appendChild(dot);row.appendChild(document.createTextNode(line.n+': '+value(line.y[low],data.kind)));
tip.appendChild(row)});
var room=box.getBoundingClientRect(),left=event.clientX-room.left+14;
if(left+tip.offsetWidth>room.width-8)left=event.clientX-room.left-tip.offsetWidth-14;
tip.style.left=left+'px';tip.style.top=(event.clientY-room.top+12)+'px'})})})();
